// BM25 over postings, term at a time, as SQLite's FTS5 defines it.
//
// Ownership: every pointer is borrowed from a NumPy array that the caller keeps alive and leaves
// unchanged for the whole call, but for `scratch`, which only this call touches; owned here are the
// vectors of touched rows and of the best ones.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace engram {

// FTS5's constants, and its operations in its order: the scores have the same bits.
constexpr double bm25_k1 = 1.2;
constexpr double bm25_b = 0.75;
constexpr double bm25_least_idf = 1e-6;

struct Posting {
    std::uint32_t row;
    std::uint32_t frequency;
};
static_assert(sizeof(Posting) == 2 * sizeof(std::uint32_t), "a posting is a row of the array");

struct PostingList {
    const Posting* first;
    std::size_t count;
    std::int64_t term;
};

struct Bm25Input {
    const PostingList* lists;
    std::size_t list_count;
    const std::uint32_t* lengths;
    std::size_t rows;
    double documents;
    double mean;
    const std::uint8_t* live;     // null: every row
    const std::uint8_t* allowed;  // null: every live row
};

// What a document's length adds below the fraction; most documents are short and share a value.
class LengthNorms {
   public:
    explicit LengthNorms(double mean) : mean_(mean) {
        for (std::size_t length = 0; length < shared; ++length) norms_[length] = computed(length);
    }

    double operator[](std::uint32_t length) const {
        return length < shared ? norms_[length] : computed(length);
    }

   private:
    static constexpr std::size_t shared = 512;

    double computed(std::size_t length) const {
        return bm25_k1 * (1 - bm25_b + bm25_b * static_cast<double>(length) / mean_);
    }

    double mean_;
    double norms_[shared];
};

// The best `limit` rows seen so far, the worst of them at the front; rows come in any order.
class BestRows {
   public:
    explicit BestRows(std::size_t limit) : limit_(limit) { heap_.reserve(limit); }

    void offer(double score, std::uint32_t row) {
        const Entry entry{score, row};
        if (heap_.size() < limit_) {
            heap_.push_back(entry);
            std::push_heap(heap_.begin(), heap_.end(), better);
        } else if (better(entry, heap_.front())) {
            std::pop_heap(heap_.begin(), heap_.end(), better);
            heap_.back() = entry;
            std::push_heap(heap_.begin(), heap_.end(), better);
        }
    }

    std::size_t write(std::int64_t* rows, double* scores) {
        std::sort_heap(heap_.begin(), heap_.end(), better);
        for (std::size_t i = 0; i < heap_.size(); ++i) {
            rows[i] = heap_[i].row;
            scores[i] = heap_[i].score;
        }
        return heap_.size();
    }

   private:
    struct Entry {
        double score;
        std::uint32_t row;
    };

    static bool better(const Entry& a, const Entry& b) {
        return a.score > b.score || (a.score == b.score && a.row < b.row);
    }

    std::size_t limit_;
    std::vector<Entry> heap_;
};

inline bool postings_in_range(const Bm25Input& in) {
    for (std::size_t l = 0; l < in.list_count; ++l) {
        const PostingList& list = in.lists[l];
        std::uint32_t highest = 0;
        for (std::size_t p = 0; p < list.count; ++p)
            highest = std::max(highest, list.first[p].row);
        if (list.count > 0 && highest >= in.rows) return false;
    }
    return true;
}

inline double inverse_frequency(const Bm25Input& in, std::size_t first, std::size_t end) {
    std::size_t hits = 0;
    for (std::size_t l = first; l < end; ++l) {
        const PostingList& list = in.lists[l];
        if (in.live == nullptr) {
            hits += list.count;
            continue;
        }
        for (std::size_t p = 0; p < list.count; ++p) hits += in.live[list.first[p].row] != 0;
    }
    const double with = static_cast<double>(hits);
    const double value = std::log((in.documents - with + 0.5) / (with + 0.5));
    // A comparison that is false for NaN as well: more hits than documents weigh as little.
    return value > 0.0 ? value : bm25_least_idf;
}

// Writes at most `k` pairs and returns how many. `scratch` holds a zero for each row, before and
// after. Call after postings_in_range() said yes.
inline std::size_t bm25(const Bm25Input& in, double* scratch, std::size_t k, std::int64_t* out_rows,
                        double* out_scores) {
    // From so many postings on, a pass over all rows costs less than a list of the touched ones.
    constexpr std::size_t rows_per_posting = 8;
    std::size_t total = 0;
    for (std::size_t l = 0; l < in.list_count; ++l) total += in.lists[l].count;
    const bool dense = total > in.rows / rows_per_posting;

    // All memory before the first score: scratch must be clean again whatever happens.
    BestRows best(std::min(k, std::min(in.rows, total)));
    std::vector<std::uint32_t> touched;
    if (!dense) touched.reserve(total);
    const LengthNorms norms(in.mean);
    const std::uint8_t* mask = in.allowed != nullptr ? in.allowed : in.live;

    for (std::size_t first = 0; first < in.list_count;) {
        std::size_t end = first;
        while (end < in.list_count && in.lists[end].term == in.lists[first].term) ++end;
        const double weight = inverse_frequency(in, first, end);
        for (; first < end; ++first) {
            const PostingList& list = in.lists[first];
            for (std::size_t p = 0; p < list.count; ++p) {
                const std::uint32_t row = list.first[p].row;
                if (mask != nullptr && mask[row] == 0) continue;
                const double frequency = static_cast<double>(list.first[p].frequency);
                if (!dense && scratch[row] == 0.0) touched.push_back(row);
                scratch[row] += weight * ((frequency * (bm25_k1 + 1.0)) /
                                          (frequency + norms[in.lengths[row]]));
            }
        }
    }
    const std::size_t candidates = dense ? in.rows : touched.size();
    for (std::size_t i = 0; i < candidates; ++i) {
        const std::uint32_t row = dense ? static_cast<std::uint32_t>(i) : touched[i];
        if (scratch[row] > 0.0) {
            best.offer(scratch[row], row);
            scratch[row] = 0.0;
        }
    }
    return best.write(out_rows, out_scores);
}

}  // namespace engram
