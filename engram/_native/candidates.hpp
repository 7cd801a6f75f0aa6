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

// The scanned rows that count, some at a time.
class Scan {
   public:
    Scan(const CodeRows& in, const QueryCodes& query, const RowMask& mask)
        : in_(in), query_(query), mask_(mask) {}

    // Returns false at the end, and at a row whose owner comes before that of the last.
    bool next() {
        batch_.count = 0;
        for (; position_ < in_.count && batch_.count < batch_rows; ++position_) {
            in_.prefetch(position_);
            const std::size_t row = in_.row(position_);
            const std::size_t owner = mask_.owner(row);
            if (owner < owner_) {
                fault_ = SketchFault::owners_order;
                return false;
            }
            owner_ = owner;
            if (mask_.allows(owner)) batch_.rows[batch_.count++] = static_cast<std::uint32_t>(row);
        }
        code_dots(in_, query_.codes, batch_);
        return batch_.count > 0;
    }

    const Batch& batch() const { return batch_; }

    SketchFault fault() const { return fault_; }

   private:
    const CodeRows& in_;
    const QueryCodes& query_;
    const RowMask& mask_;
    std::size_t position_ = 0;
    std::size_t owner_ = 0;
    SketchFault fault_ = SketchFault::none;
    Batch batch_;
};

// Appends the rows that reach the `limit`-th best owner. Call after rows_fault() said none.
inline SketchFault coarse_nearest(const CodeRows& in, const QueryCodes& query, const RowMask& mask,
                                  std::size_t limit, std::vector<std::uint32_t>& found) {
    // Twice 16 h + 7.5 - 128 is 32 h - 241, and twice a score ranks as the score does.
    const std::int64_t shift = 241 * query.sum;
    std::vector<Standing> each;
    std::vector<Standing> best;
    each.reserve(in.count);
    Scan scan(in, query, mask);
    std::size_t owner = 0;
    while (scan.next()) {
        const Batch& batch = scan.batch();
        for (std::size_t i = 0; i < batch.count; ++i) {
            const std::size_t row = batch.rows[i];
            const std::int64_t sum = 32 * std::int64_t{batch.dots[i]} - shift;
            const double score = static_cast<double>(in.scales[row]) * static_cast<double>(sum);
            if (best.empty() || mask.owner(row) != owner) best.push_back({score, best.size()});
            owner = mask.owner(row);
            best.back().score = std::max(best.back().score, score);
            each.push_back({score, best.back().turn});
        }
    }
    if (scan.fault() != SketchFault::none) return scan.fault();
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
    const Uncertainty uncertainty(query, query_scale, certainty);
    const std::int64_t shift = code_zero * query.sum;
    KthBound bound(k, in.count);
    Scan scan(in, query, mask);
    std::size_t owner = 0;
    double reached = lowest;  // the lower bound of the owner whose rows are being read
    while (scan.next()) {
        const Batch& batch = scan.batch();
        for (std::size_t i = 0; i < batch.count; ++i) {
            const std::size_t row = batch.rows[i];
            if (mask.owner(row) != owner) {
                if (reached > lowest) bound.offer(reached);
                owner = mask.owner(row);
                reached = lowest;
            }
            const double scale = static_cast<double>(in.scales[row]);
            const std::int64_t sum = std::int64_t{batch.dots[i]} - shift;
            const double similarity = query_scale * scale * static_cast<double>(sum);
            const double off = uncertainty.of(static_cast<double>(in.errors[row]), scale);
            reached = std::max(reached, similarity - off);
            // The bound only rises, so what is below it now stays below.
            if (similarity + off >= bound.value())
                found.push_back({batch.rows[i], static_cast<float>(similarity), similarity + off});
        }
    }
    if (scan.fault() != SketchFault::none) return scan.fault();
    if (reached > lowest) bound.offer(reached);
    const double least = bound.value();
    found.erase(std::remove_if(found.begin(), found.end(),
                               [least](const Candidate& c) { return c.highest < least; }),
                found.end());
    return SketchFault::none;
}

}  // namespace engram
