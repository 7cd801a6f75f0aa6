// Exact scan: similarities in blocks, then a bounded heap of the best owners.
//
// Ownership: every pointer is borrowed from a NumPy array that the caller keeps alive and leaves
// unchanged for the whole call; the only memory owned here is the heap's vector.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "cpu.hpp"

namespace engram {

enum class ScanFault { none, rows_order, rows_range, owners_order };

// A dot product is 32 partial sums, one per lane, folded in halves. The count is part of the
// result's definition (the NumPy twin does the same), not of the machine.
constexpr std::size_t scan_lanes = 32;

constexpr std::size_t scan_block = 256;

ENGRAM_INLINE float dot(const float* row, const float* query, std::size_t dims) {
    float lane[scan_lanes] = {};
    std::size_t i = 0;
    for (; i + scan_lanes <= dims; i += scan_lanes)
        for (std::size_t l = 0; l < scan_lanes; ++l) lane[l] += row[i + l] * query[i + l];
    for (std::size_t l = 0; i < dims; ++i, ++l) lane[l] += row[i] * query[i];
    for (std::size_t half = scan_lanes / 2; half > 0; half /= 2)
        for (std::size_t l = 0; l < half; ++l) lane[l] += lane[l + half];
    return lane[0];
}

struct ScanInput {
    const float* matrix;
    std::size_t dims;
    const float* query;
    const std::int64_t* rows;  // null: every row of the matrix

    std::size_t row(std::size_t position) const {
        return rows == nullptr ? position : static_cast<std::size_t>(rows[position]);
    }
};

ENGRAM_INLINE void similarities_of(const ScanInput& in, std::size_t first, std::size_t last,
                                   float* out) {
    // Listed rows lie anywhere, which the hardware prefetcher cannot guess: ask some rows ahead.
    constexpr std::size_t ahead = 4;
    constexpr std::size_t floats_per_line = 16;
    for (std::size_t j = first; j < last; ++j) {
        if (in.rows != nullptr && j + ahead < last) {
            const float* next = in.matrix + in.row(j + ahead) * in.dims;
            for (std::size_t i = 0; i < in.dims; i += floats_per_line) ENGRAM_PREFETCH(next + i);
        }
        const float similarity = dot(in.matrix + in.row(j) * in.dims, in.query, in.dims);
        // NaN would break the order of the heap, so it ranks below everything.
        out[j - first] = similarity == similarity ? similarity
                                                  : -std::numeric_limits<float>::infinity();
    }
}

#ifdef ENGRAM_AVX2
ENGRAM_AVX2 inline void similarities_avx2(const ScanInput& in, std::size_t first, std::size_t last,
                                          float* out) {
    similarities_of(in, first, last, out);
}
#endif

inline void similarities(const ScanInput& in, std::size_t first, std::size_t last, float* out) {
#ifdef ENGRAM_AVX2
    if (cpu_has_avx2()) return similarities_avx2(in, first, last, out);
#endif
    similarities_of(in, first, last, out);
}

// The best `limit` owners seen so far, the worst of them at the front.
class BestOwners {
   public:
    explicit BestOwners(std::size_t limit) : limit_(limit) { heap_.reserve(limit); }

    // Owners arrive ascending, so an equal similarity never displaces an earlier owner.
    void offer(float similarity, std::int64_t owner) {
        if (heap_.size() < limit_) {
            heap_.push_back({similarity, owner});
            std::push_heap(heap_.begin(), heap_.end(), better);
        } else if (similarity > heap_.front().similarity) {
            std::pop_heap(heap_.begin(), heap_.end(), better);
            heap_.back() = {similarity, owner};
            std::push_heap(heap_.begin(), heap_.end(), better);
        }
    }

    std::size_t write(std::int64_t* owners, float* similarities) {
        std::sort_heap(heap_.begin(), heap_.end(), better);
        for (std::size_t i = 0; i < heap_.size(); ++i) {
            owners[i] = heap_[i].owner;
            similarities[i] = heap_[i].similarity;
        }
        return heap_.size();
    }

   private:
    struct Entry {
        float similarity;
        std::int64_t owner;
    };

    static bool better(const Entry& a, const Entry& b) {
        return a.similarity > b.similarity || (a.similarity == b.similarity && a.owner < b.owner);
    }

    std::size_t limit_;
    std::vector<Entry> heap_;
};

// The order of the checks is the twin's: the order of `rows`, their range, the order of `owners`.
inline ScanFault scan_fault(const std::int64_t* owners, std::int64_t matrix_rows,
                            const std::int64_t* rows, std::size_t count) {
    if (count == 0) return ScanFault::none;
    if (rows != nullptr) {
        for (std::size_t j = 1; j < count; ++j)
            if (rows[j] <= rows[j - 1]) return ScanFault::rows_order;
        if (rows[0] < 0 || rows[count - 1] >= matrix_rows) return ScanFault::rows_range;
    }
    for (std::size_t j = 1; j < count; ++j) {
        const std::int64_t before = owners[rows == nullptr ? j - 1 : rows[j - 1]];
        const std::int64_t after = owners[rows == nullptr ? j : rows[j]];
        if (after < before) return ScanFault::owners_order;
    }
    return ScanFault::none;
}

// Writes at most min(k, count) pairs and returns how many. Call after scan_fault() said none.
inline std::size_t top_k(const ScanInput& in, const std::int64_t* owners, std::size_t count,
                         std::size_t k, std::int64_t* out_owners, float* out_similarities) {
    if (count == 0) return 0;
    BestOwners best(std::min(k, count));
    float block[scan_block];
    std::int64_t owner = owners[in.row(0)];
    float highest = -std::numeric_limits<float>::infinity();
    for (std::size_t first = 0; first < count; first += scan_block) {
        const std::size_t last = std::min(first + scan_block, count);
        similarities(in, first, last, block);
        for (std::size_t j = first; j < last; ++j) {
            const std::int64_t current = owners[in.row(j)];
            if (current != owner) {
                best.offer(highest, owner);
                owner = current;
                highest = block[j - first];
            } else {
                highest = std::max(highest, block[j - first]);
            }
        }
    }
    best.offer(highest, owner);
    return best.write(out_owners, out_similarities);
}

}  // namespace engram
