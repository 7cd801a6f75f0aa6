// Exact scan into a bounded heap of the best owners.
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

#ifdef ENGRAM_AVX2
#include <immintrin.h>
#endif

namespace engram {

enum class ScanFault { none, rows_order, rows_range, owners_order };

// A dot product is 32 partial sums, one per lane, folded in halves. The count is part of the
// result's definition (the NumPy twin does the same), not of the machine.
constexpr std::size_t scan_lanes = 32;

using Dot = float (*)(const float* row, const float* query, std::size_t dims);

inline float dot_plain(const float* row, const float* query, std::size_t dims) {
    float lane[scan_lanes] = {};
    std::size_t i = 0;
    for (; i + scan_lanes <= dims; i += scan_lanes)
        for (std::size_t l = 0; l < scan_lanes; ++l) lane[l] += row[i + l] * query[i + l];
    for (std::size_t l = 0; i < dims; ++i, ++l) lane[l] += row[i] * query[i];
    for (std::size_t half = scan_lanes / 2; half > 0; half /= 2)
        for (std::size_t l = 0; l < half; ++l) lane[l] += lane[l + half];
    return lane[0];
}

#ifdef ENGRAM_AVX2
// The same 32 lanes in four registers. Compilers keep the lanes of the plain loop in memory, which
// takes more than twice the time. Not fused: the baseline could not give the same bits, and rows
// out of the cache wait for memory anyway.
ENGRAM_AVX2 inline float dot_avx2(const float* row, const float* query, std::size_t dims) {
    __m256 a = _mm256_setzero_ps();
    __m256 b = a;
    __m256 c = a;
    __m256 d = a;
    std::size_t i = 0;
    for (; i + scan_lanes <= dims; i += scan_lanes) {
        const float* r = row + i;
        const float* q = query + i;
        a = _mm256_add_ps(a, _mm256_mul_ps(_mm256_loadu_ps(r), _mm256_loadu_ps(q)));
        b = _mm256_add_ps(b, _mm256_mul_ps(_mm256_loadu_ps(r + 8), _mm256_loadu_ps(q + 8)));
        c = _mm256_add_ps(c, _mm256_mul_ps(_mm256_loadu_ps(r + 16), _mm256_loadu_ps(q + 16)));
        d = _mm256_add_ps(d, _mm256_mul_ps(_mm256_loadu_ps(r + 24), _mm256_loadu_ps(q + 24)));
    }
    if (i < dims) {
        float lane[scan_lanes];
        _mm256_storeu_ps(lane, a);
        _mm256_storeu_ps(lane + 8, b);
        _mm256_storeu_ps(lane + 16, c);
        _mm256_storeu_ps(lane + 24, d);
        for (std::size_t l = 0; i < dims; ++i, ++l) lane[l] += row[i] * query[i];
        a = _mm256_loadu_ps(lane);
        b = _mm256_loadu_ps(lane + 8);
        c = _mm256_loadu_ps(lane + 16);
        d = _mm256_loadu_ps(lane + 24);
    }
    const __m256 eight = _mm256_add_ps(_mm256_add_ps(a, c), _mm256_add_ps(b, d));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
#endif

inline Dot dot_of_this_cpu() {
#ifdef ENGRAM_AVX2
    if (cpu_has_avx2()) return dot_avx2;
#endif
    return dot_plain;
}

struct ScanInput {
    const float* matrix;
    std::size_t dims;
    const float* query;
    const std::int64_t* rows;  // null: every row of the matrix

    std::size_t row(std::size_t position) const {
        return rows == nullptr ? position : static_cast<std::size_t>(rows[position]);
    }

    const float* vector(std::size_t position) const { return matrix + row(position) * dims; }
};

// Listed rows lie anywhere, which the hardware cannot guess: ask for one before its turn.
inline void prefetch(const ScanInput& in, std::size_t position) {
    constexpr std::size_t floats_per_line = 16;
    const float* vector = in.vector(position);
    for (std::size_t i = 0; i < in.dims; i += floats_per_line) ENGRAM_PREFETCH(vector + i);
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
    constexpr float lowest = -std::numeric_limits<float>::infinity();
    constexpr std::size_t ahead = 4;
    const Dot dot = dot_of_this_cpu();
    BestOwners best(std::min(k, count));
    std::int64_t owner = owners[in.row(0)];
    float highest = lowest;
    for (std::size_t j = 0; j < count; ++j) {
        if (in.rows != nullptr && j + ahead < count) prefetch(in, j + ahead);
        const std::int64_t current = owners[in.row(j)];
        if (current != owner) {
            best.offer(highest, owner);
            owner = current;
            highest = lowest;
        }
        // A comparison that is false for NaN: NaN would break the order of the heap.
        const float similarity = dot(in.vector(j), in.query, in.dims);
        if (similarity > highest) highest = similarity;
    }
    best.offer(highest, owner);
    return best.write(out_owners, out_similarities);
}

}  // namespace engram
