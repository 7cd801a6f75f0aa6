// The best rows of several parts, by score.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace engram {

// The best `limit` rows seen so far, the worst of them at the front.
class BestRows {
   public:
    explicit BestRows(std::size_t limit) : limit_(limit) { heap_.reserve(limit); }

    // A row with a lower score cannot enter, nor one with this score behind those seen.
    double threshold() const { return heap_.size() < limit_ ? 0.0 : heap_.front().score; }

    void offer(double score, std::uint32_t part, std::uint32_t row) {
        const Entry entry{score, part, row};
        if (heap_.size() < limit_) {
            heap_.push_back(entry);
            std::push_heap(heap_.begin(), heap_.end(), better);
        } else if (better(entry, heap_.front())) {
            std::pop_heap(heap_.begin(), heap_.end(), better);
            heap_.back() = entry;
            std::push_heap(heap_.begin(), heap_.end(), better);
        }
    }

    std::size_t write(std::int64_t* parts, std::int64_t* rows, double* scores) {
        std::sort_heap(heap_.begin(), heap_.end(), better);
        for (std::size_t i = 0; i < heap_.size(); ++i) {
            parts[i] = heap_[i].part;
            rows[i] = heap_[i].row;
            scores[i] = heap_[i].score;
        }
        return heap_.size();
    }

   private:
    struct Entry {
        double score;
        std::uint32_t part;
        std::uint32_t row;
    };

    static bool better(const Entry& a, const Entry& b) {
        if (a.score != b.score) return a.score > b.score;
        return a.part != b.part ? a.part < b.part : a.row < b.row;
    }

    std::size_t limit_;
    std::vector<Entry> heap_;
};

}  // namespace engram
