// Which rows can be among the nearest, judged by their codes.
//
// Ownership: every pointer is borrowed from a NumPy array that the caller keeps alive and leaves
// unchanged for the whole call; owned here are the vectors.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "cpu.hpp"
#include "hamming.hpp"
#include "sketch.hpp"

namespace engram {

enum class SketchFault { none, rows_order, rows_range, owners_order };

struct CodeRows {
    const std::uint8_t* high;
    const std::uint8_t* low;  // null: the high halves only
    const float* scales;
    const float* errors;
    std::size_t bytes;          // of a row, in each plane
    const std::uint32_t* rows;  // null: all of them
    std::size_t count;          // of scanned rows

    std::size_t row(std::size_t position) const {
        return rows == nullptr ? position : rows[position];
    }

    std::int32_t dot(CodeDot function, std::size_t row, const std::int16_t* query) const {
        const std::uint8_t* lower = low == nullptr ? nullptr : low + row * bytes;
        return function(high + row * bytes, lower, query, bytes);
    }

    // Listed rows lie anywhere, which the hardware cannot guess: ask for one before its turn.
    void prefetch(std::size_t position) const {
        constexpr std::size_t ahead = 16;
        constexpr std::size_t line = 64;
        if (rows == nullptr || position + ahead >= count) return;
        const std::size_t next = rows[position + ahead];
        for (std::size_t i = 0; i < bytes; i += line) {
            ENGRAM_PREFETCH(high + next * bytes + i);
            if (low != nullptr) ENGRAM_PREFETCH(low + next * bytes + i);
        }
        ENGRAM_PREFETCH(scales + next);
        if (errors != nullptr) ENGRAM_PREFETCH(errors + next);
    }
};

inline SketchFault rows_fault(const std::uint32_t* rows, std::size_t count, std::size_t total) {
    if (rows == nullptr || count == 0) return SketchFault::none;
    for (std::size_t j = 1; j < count; ++j)
        if (rows[j] <= rows[j - 1]) return SketchFault::rows_order;
    return rows[count - 1] < total ? SketchFault::none : SketchFault::rows_range;
}

struct Standing {
    double score;
    std::size_t turn;  // of the owner among the scanned ones

    bool better(const Standing& other) const {
        return score > other.score || (score == other.score && turn < other.turn);
    }
};

// Appends the rows that reach the `limit`-th best owner. Call after rows_fault() said none.
inline SketchFault coarse_nearest(const CodeRows& in, const QueryCodes& query,
                                  const std::uint32_t* owners, std::size_t limit,
                                  std::vector<std::uint32_t>& found) {
    const CodeDot dot = code_dot_of_this_cpu();
    // Twice 16 h + 7.5 - 128 is 32 h - 241, and twice a score ranks as the score does.
    const std::int64_t shift = 241 * query.sum;
    std::vector<Standing> each(in.count);
    std::vector<Standing> best;
    for (std::size_t j = 0; j < in.count; ++j) {
        in.prefetch(j);
        const std::size_t row = in.row(j);
        const std::int64_t sum = 32 * std::int64_t{in.dot(dot, row, query.codes)} - shift;
        const double score = static_cast<double>(in.scales[row]) * static_cast<double>(sum);
        const bool again = owners != nullptr && j > 0 && owners[row] == owners[in.row(j - 1)];
        if (owners != nullptr && j > 0 && owners[row] < owners[in.row(j - 1)])
            return SketchFault::owners_order;
        if (!again) best.push_back({score, best.size()});
        best.back().score = std::max(best.back().score, score);
        each[j] = {score, best.back().turn};
    }
    Standing cut{-std::numeric_limits<double>::infinity(), best.size()};
    if (limit < best.size()) {
        const auto last = best.begin() + static_cast<std::ptrdiff_t>(limit - 1);
        std::nth_element(best.begin(), last, best.end(),
                         [](const Standing& a, const Standing& b) { return a.better(b); });
        cut = *last;
    }
    for (std::size_t j = 0; j < in.count; ++j)
        if (!cut.better(each[j])) found.push_back(static_cast<std::uint32_t>(in.row(j)));
    return SketchFault::none;
}

// The k-th largest of the owners' lower bounds so far.
class KthBound {
   public:
    KthBound(std::size_t k, std::size_t most) : k_(k) { heap_.reserve(std::min(k, most)); }

    void offer(double bound) {
        if (heap_.size() == k_) {
            if (bound <= heap_.front()) return;
            std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
            heap_.pop_back();
        }
        heap_.push_back(bound);
        std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
    }

    double value() const {
        return heap_.size() == k_ ? heap_.front() : -std::numeric_limits<double>::infinity();
    }

   private:
    std::size_t k_;
    std::vector<double> heap_;
};

// How far a dot product can be from what the codes say. With q and v the vectors, Q and V what the
// codes stand for, t the query's scale and d the number of codes,
//   |q.v - Q.V| <= |q.(v - V)| + |(q - Q).V| <= |q| error + (t / 2) (128 scale d)
// by Cauchy and Schwarz on the left and because no number of the query moves by more than t / 2 on
// the right. |q| <= |Q| + (t / 2) sqrt(d). The right side has 64 + 8 + d / 64 instead of 64: enough
// for what a dot product in float32 adds (top_k's, at most (d / 32 + 6) 2^-24 d (2^15 t) (127 scale)),
// so that candidates scored by it are complete, too.
struct Uncertainty {
    double per_error;
    double per_scale;

    Uncertainty(const QueryCodes& query, double scale, double certainty) {
        constexpr double margin = 1.0 + 0x1p-30;  // above what these few operations can lose
        const double count = static_cast<double>(query.count);
        const double norm =
            scale * (std::sqrt(static_cast<double>(query.squares)) + 0.5 * std::sqrt(count));
        per_error = certainty * norm * margin;
        per_scale = scale * count * (72.0 + count / 64.0);
    }

    double of(double error, double scale) const { return per_error * error + per_scale * scale; }
};

struct Candidate {
    std::uint32_t row;
    float similarity;
    double highest;
};

// Appends the rows that can belong to one of the k best owners. Call after rows_fault() said none.
inline SketchFault code_candidates(const CodeRows& in, const QueryCodes& query, double query_scale,
                                   const RowMask& mask, std::size_t k, double certainty,
                                   std::vector<Candidate>& found) {
    constexpr double lowest = -std::numeric_limits<double>::infinity();
    const CodeDot dot = code_dot_of_this_cpu();
    const Uncertainty uncertainty(query, query_scale, certainty);
    const std::int64_t shift = code_zero * query.sum;
    KthBound bound(k, in.count);
    std::size_t owner = 0;
    double reached = lowest;  // the lower bound of the owner whose rows are being read
    for (std::size_t j = 0; j < in.count; ++j) {
        in.prefetch(j);
        const std::size_t row = in.row(j);
        const std::size_t current = mask.owner(row);
        if (current < owner) return SketchFault::owners_order;
        if (current != owner) {
            if (reached > lowest) bound.offer(reached);
            owner = current;
            reached = lowest;
        }
        if (!mask.allows(current)) continue;
        const double scale = static_cast<double>(in.scales[row]);
        const std::int64_t sum = std::int64_t{in.dot(dot, row, query.codes)} - shift;
        const double similarity = query_scale * scale * static_cast<double>(sum);
        const double off = uncertainty.of(static_cast<double>(in.errors[row]), scale);
        reached = std::max(reached, similarity - off);
        // The bound only rises, so what is below it now stays below.
        if (similarity + off >= bound.value())
            found.push_back({static_cast<std::uint32_t>(row), static_cast<float>(similarity),
                             similarity + off});
    }
    if (reached > lowest) bound.offer(reached);
    const double least = bound.value();
    found.erase(std::remove_if(found.begin(), found.end(),
                               [least](const Candidate& c) { return c.highest < least; }),
                found.end());
    return SketchFault::none;
}

}  // namespace engram
