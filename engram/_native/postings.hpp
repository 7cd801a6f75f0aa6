// BM25 over postings as SQLite's FTS5 defines it, with constants of the caller's, block of rows by block of rows.
//
// Ownership: every pointer is borrowed from a NumPy array that the caller keeps alive and leaves
// unchanged for the whole call; a Ranking owns the sums of one block and the best rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "best_rows.hpp"
#include "cpu.hpp"

#ifdef ENGRAM_AVX2
#include <immintrin.h>
#endif

namespace engram {

// FTS5's operations in its order: with its constants, 1.2 and 0.75, the scores have the same bits.
struct Bm25 {
    double k1;
    double b;
};

constexpr double bm25_least_idf = 1e-6;

// Rows of a block: their sums stay in the fast caches.
constexpr std::size_t block_rows = 8192;

struct PostingRange {
    std::int64_t first;
    std::int64_t end;
};
static_assert(sizeof(PostingRange) == 2 * sizeof(std::int64_t), "a range is a row of the array");

struct RankedPart {
    const std::uint32_t* lengths;
    std::size_t row_count;
    const std::uint32_t* rows;
    const std::uint8_t* frequencies;
    const std::int64_t* large;
    const std::uint32_t* large_frequencies;
    std::size_t large_count;
    const std::uint8_t* live;     // null: every row
    const std::uint8_t* allowed;  // null: every live row
    const std::uint32_t* listed;  // null: not a list
    std::size_t listed_count;
    const PostingRange* ranges;  // one for each term of the query

    // The number beside a posting's byte where it stands for a larger one.
    std::uint32_t frequency(std::size_t posting) const {
        if (frequencies[posting] < 255) return frequencies[posting];
        const auto place = static_cast<std::int64_t>(posting);
        const std::int64_t* found = std::lower_bound(large, large + large_count, place);
        if (found == large + large_count || *found != place)
            throw std::invalid_argument("large must name every posting whose frequency is 255");
        return large_frequencies[found - large];
    }
};

[[noreturn]] inline void refuse_rows() {
    throw std::invalid_argument("rows must ascend within a term, in [0, number of rows)");
}

// f·(k1 + 1) / (f + k1·(1 − b + b·length / mean)); most postings share a few values.
class Saturation {
   public:
    Saturation(const Bm25& constants, double mean) : constants_(constants), mean_(mean) {
        for (std::uint32_t f = 0; f < few; ++f)
            for (std::uint32_t length = 0; length < short_text; ++length)
                shared_[f * short_text + length] = computed(f + 1, length);
    }

    double operator()(const RankedPart& part, std::size_t posting, std::uint32_t length) const {
        const std::uint32_t f = part.frequencies[posting] - 1U;
        if (f < few && length < short_text) return shared_[f * short_text + length];
        return computed(part.frequency(posting), length);
    }

   private:
    static constexpr std::uint32_t few = 4;
    static constexpr std::uint32_t short_text = 256;

    double computed(std::uint32_t f, std::uint32_t length) const {
        const auto [k1, b] = constants_;
        const double frequency = f;
        const double norm = k1 * (1 - b + b * static_cast<double>(length) / mean_);
        return (frequency * (k1 + 1.0)) / (frequency + norm);
    }

    Bm25 constants_;
    double mean_;
    double shared_[few * short_text];
};

// From `first` on, where a group of sums begins that has one above the threshold, or `end`. Both
// are multiples of a group's size.
constexpr std::size_t sum_group = 16;

using NextAbove = std::size_t (*)(const double*, std::size_t, std::size_t, double);

inline std::size_t next_above_plain(const double* sums, std::size_t first, std::size_t end,
                                    double threshold) {
    for (; first < end; first += sum_group) {
        bool above = false;
        for (std::size_t i = first; i < first + sum_group; ++i) above |= sums[i] > threshold;
        if (above) break;
    }
    return first;
}

#ifdef ENGRAM_AVX2
ENGRAM_AVX2 inline std::size_t next_above_avx2(const double* sums, std::size_t first,
                                               std::size_t end, double threshold) {
    const __m256d bound = _mm256_set1_pd(threshold);
    for (; first < end; first += sum_group) {
        __m256d most = _mm256_loadu_pd(sums + first);
        for (std::size_t i = 4; i < sum_group; i += 4)
            most = _mm256_max_pd(most, _mm256_loadu_pd(sums + first + i));
        if (_mm256_movemask_pd(_mm256_cmp_pd(most, bound, _CMP_GT_OQ)) != 0) break;
    }
    return first;
}
#endif

inline NextAbove next_above_of_this_cpu() {
#ifdef ENGRAM_AVX2
    if (cpu_has_avx2()) return next_above_avx2;
#endif
    return next_above_plain;
}

// The first of the ascending values from `first` on that is not less than `value`; steps double, so
// a near one is found soon.
inline std::size_t seek(const std::uint32_t* values, std::size_t first, std::size_t end,
                        std::uint32_t value) {
    std::size_t step = 1;
    std::size_t low = first;
    while (low < end && values[low] < value) {
        first = low + 1;
        low += step;
        step *= 2;
    }
    return static_cast<std::size_t>(
        std::lower_bound(values + first, values + std::min(low, end), value) - values);
}

// One term of the query in one part: its postings from the next one on.
struct Cursor {
    std::size_t next;
    std::size_t end;
    double weight;
};

class Ranking {
   public:
    Ranking(const std::vector<RankedPart>& parts, std::size_t term_count, double documents,
            double mean, const Bm25& constants, std::size_t limit)
        : parts_(parts), saturation_(constants, mean), best_(limit), sums_(block_rows), marks_(block_rows) {
        for (std::size_t term = 0; term < term_count; ++term)
            weights_.push_back(weight(term, documents));
        for (std::size_t part = 0; part < parts_.size(); ++part) rank(part);
    }

    std::size_t write(std::int64_t* parts, std::int64_t* rows, double* scores) {
        return best_.write(parts, rows, scores);
    }

   private:
    double weight(std::size_t term, double documents) const {
        std::size_t hits = 0;
        for (const RankedPart& part : parts_) {
            const auto first = static_cast<std::size_t>(part.ranges[term].first);
            const auto end = static_cast<std::size_t>(part.ranges[term].end);
            if (part.live == nullptr) {
                hits += end - first;
                continue;
            }
            for (std::size_t p = first; p < end; ++p) {
                if (part.rows[p] >= part.row_count) refuse_rows();
                hits += part.live[part.rows[p]];
            }
        }
        const double with = static_cast<double>(hits);
        const double value = std::log((documents - with + 0.5) / (with + 0.5));
        // A comparison that is false for NaN as well: more hits than documents weigh as little.
        return value > 0.0 ? value : bm25_least_idf;
    }

    void rank(std::size_t number) {
        // With fewer postings than this share of the rows, most sums of a block stay zero.
        constexpr std::size_t sparse_share = 8;
        const RankedPart& part = parts_[number];
        std::vector<Cursor> cursors;
        std::size_t postings = 0;
        for (std::size_t term = 0; term < weights_.size(); ++term) {
            const auto first = static_cast<std::size_t>(part.ranges[term].first);
            const auto end = static_cast<std::size_t>(part.ranges[term].end);
            if (first == end) continue;
            cursors.push_back({first, end, weights_[term]});
            postings += end - first;
        }
        part_ = static_cast<std::uint32_t>(number);
        if (part.listed != nullptr) require_list(part);
        if (cursors.empty()) return;
        if (part.listed != nullptr)
            rank_listed(part, cursors);
        else if (postings < part.row_count / sparse_share)
            rank_sparse(part, cursors);
        else
            rank_dense(part, cursors);
    }

    static void require_list(const RankedPart& part) {
        bool sound = part.listed_count == 0 || part.listed[part.listed_count - 1] < part.row_count;
        for (std::size_t i = 1; i < part.listed_count; ++i)
            sound &= part.listed[i - 1] < part.listed[i];
        if (!sound)
            throw std::invalid_argument("allowed must ascend, in [0, number of rows)");
    }

    void rank_dense(const RankedPart& part, std::vector<Cursor>& cursors) {
        for (std::size_t start = 0; start < part.row_count; start += block_rows) {
            const std::size_t size = std::min(block_rows, part.row_count - start);
            for (Cursor& cursor : cursors) add<false>(part, cursor, start, size);
            const std::size_t end = (size + sum_group - 1) / sum_group * sum_group;
            const double* sums = sums_.data();
            std::size_t at = 0;
            while ((at = next_above_(sums, at, end, best_.threshold())) < end)
                for (const std::size_t stop = at + sum_group; at < stop; ++at)
                    if (sums[at] > best_.threshold()) offer(part, start + at, sums[at]);
            std::fill_n(sums_.begin(), end, 0.0);
        }
        for (const Cursor& cursor : cursors)
            if (cursor.next != cursor.end) refuse_rows();
    }

    void rank_sparse(const RankedPart& part, std::vector<Cursor>& cursors) {
        for (std::size_t bound = 0;;) {
            std::size_t start = SIZE_MAX;
            for (const Cursor& cursor : cursors)
                if (cursor.next < cursor.end)
                    start = std::min<std::size_t>(start, part.rows[cursor.next]);
            if (start == SIZE_MAX) return;
            if (start < bound || start >= part.row_count) refuse_rows();
            const std::size_t size = std::min(block_rows, part.row_count - start);
            bound = start + size;
            for (Cursor& cursor : cursors) add<true>(part, cursor, start, size);
            for (const std::uint32_t offset : touched_) {
                if (sums_[offset] >= best_.threshold()) offer(part, start + offset, sums_[offset]);
                sums_[offset] = 0.0;
            }
            touched_.clear();
        }
    }

    void rank_listed(const RankedPart& part, std::vector<Cursor>& cursors) {
        const std::uint32_t* listed = part.listed;
        for (std::size_t first = 0, end = 0; first < part.listed_count; first = end) {
            const std::uint32_t start = listed[first];
            for (; end < part.listed_count && listed[end] - start < block_rows; ++end)
                marks_[listed[end] - start] = 1;
            const std::size_t size = listed[end - 1] - start + std::size_t{1};
            for (Cursor& cursor : cursors) {
                cursor.next = seek(part.rows, cursor.next, cursor.end, start);
                if (is_cheaper_to_probe(part, cursor, end - first, size))
                    probe(part, cursor, start, listed + first, listed + end);
                else
                    add_marked(part, cursor, start, size);
            }
            for (std::size_t i = first; i < end; ++i) {
                double& sum = sums_[listed[i] - start];
                if (sum > best_.threshold()) offer(part, listed[i], sum);
                sum = 0.0;
                marks_[listed[i] - start] = 0;
            }
        }
    }

    // Dead rows and forbidden ones stay out.
    void offer(const RankedPart& part, std::size_t row, double score) {
        if (part.live != nullptr && part.live[row] == 0) return;
        if (part.allowed != nullptr && part.allowed[row] == 0) return;
        best_.offer(score, part_, static_cast<std::uint32_t>(row));
    }

    // The test of the row keeps every access inside the block, whatever the arrays hold.
    template <bool touching>
    void add(const RankedPart& part, Cursor& cursor, std::size_t start, std::size_t size) {
        const auto base = static_cast<std::uint32_t>(start);
        const std::uint32_t* const rows = part.rows;
        const std::uint32_t* const lengths = part.lengths + start;
        double* const sums = sums_.data();
        const double weight = cursor.weight;
        const std::size_t end = cursor.end;
        std::size_t p = cursor.next;
        for (; p < end; ++p) {
            const std::uint32_t offset = rows[p] - base;
            if (offset >= size) break;
            if (touching && sums[offset] == 0.0) touched_.push_back(offset);
            sums[offset] += weight * saturation_(part, p, lengths[offset]);
        }
        cursor.next = p;
    }

    void add_marked(const RankedPart& part, Cursor& cursor, std::uint32_t start,
                    std::size_t size) {
        std::size_t p = cursor.next;
        for (; p < cursor.end; ++p) {
            const std::uint32_t offset = part.rows[p] - start;
            if (offset >= size) break;
            if (marks_[offset] != 0)
                sums_[offset] += cursor.weight * saturation_(part, p, part.lengths[start + offset]);
        }
        cursor.next = p;
    }

    // Whether to look for each of so many rows costs less than to pass the postings of so many.
    static bool is_cheaper_to_probe(const RankedPart& part, const Cursor& cursor,
                                    std::size_t listed, std::size_t size) {
        constexpr std::size_t postings_per_probe = 16;
        // Postings lie as densely as in the rest, about: what is left of them, for rows left.
        const double share = static_cast<double>(size) / static_cast<double>(part.row_count);
        return static_cast<double>(listed * postings_per_probe) <
               static_cast<double>(cursor.end - cursor.next) * share;
    }

    void probe(const RankedPart& part, Cursor& cursor, std::uint32_t start,
               const std::uint32_t* row, const std::uint32_t* end) {
        std::size_t p = cursor.next;
        for (; row != end && p < cursor.end; ++row) {
            p = seek(part.rows, p, cursor.end, *row);
            if (p < cursor.end && part.rows[p] == *row)
                sums_[*row - start] += cursor.weight * saturation_(part, p, part.lengths[*row]);
        }
        cursor.next = p;
    }

    const std::vector<RankedPart>& parts_;
    const Saturation saturation_;
    const NextAbove next_above_ = next_above_of_this_cpu();
    BestRows best_;
    std::vector<double> weights_;
    std::vector<double> sums_;         // of the rows of a block; zeros between blocks
    std::vector<std::uint8_t> marks_;  // the listed rows of a block; zeros between blocks
    std::vector<std::uint32_t> touched_;
    std::uint32_t part_ = 0;
};

// Writes at most `limit` rows and returns how many.
inline std::size_t bm25(const std::vector<RankedPart>& parts, std::size_t term_count,
                        double documents, double mean, const Bm25& constants, std::size_t limit,
                        std::int64_t* out_parts, std::int64_t* out_rows, double* out_scores) {
    Ranking ranking(parts, term_count, documents, mean, constants, limit);
    return ranking.write(out_parts, out_rows, out_scores);
}

// Writes how often each of some rows has each term: one line of `out` for each row.
inline void row_frequencies(const RankedPart& part, std::size_t term_count,
                            const std::uint32_t* wanted, std::size_t count, float* out) {
    for (std::size_t term = 0; term < term_count; ++term) {
        const std::uint32_t* first = part.rows + part.ranges[term].first;
        const std::uint32_t* end = part.rows + part.ranges[term].end;
        for (std::size_t i = 0; i < count; ++i) {
            const std::uint32_t* found = std::lower_bound(first, end, wanted[i]);
            const bool has = found != end && *found == wanted[i];
            out[i * term_count + term] =
                has ? static_cast<float>(part.frequency(found - part.rows)) : 0.0F;
        }
    }
}

// The place of a term among those in the order of their bytes, or -1.
inline std::int64_t find_term(const char* term_bytes, std::size_t byte_count,
                              const std::int64_t* term_ends, std::size_t term_count,
                              const char* wanted, std::size_t size) {
    std::size_t low = 0;
    std::size_t high = term_count;
    while (low < high) {
        const std::size_t middle = low + (high - low) / 2;
        const std::int64_t first = middle == 0 ? 0 : term_ends[middle - 1];
        const std::int64_t end = term_ends[middle];
        if (first < 0 || end < first || static_cast<std::size_t>(end) > byte_count)
            throw std::invalid_argument("term_ends must ascend within term_bytes");
        const auto known = static_cast<std::size_t>(end - first);
        const std::size_t common = std::min(known, size);
        int order = common == 0 ? 0 : std::memcmp(term_bytes + first, wanted, common);
        if (order == 0) order = known == size ? 0 : known < size ? -1 : 1;
        if (order == 0) return static_cast<std::int64_t>(middle);
        (order < 0 ? low : high) = order < 0 ? middle + 1 : middle;
    }
    return -1;
}

}  // namespace engram
