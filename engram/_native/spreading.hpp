// Spreading activation over a graph in compressed sparse rows.
//
// Ownership: the pointers of a Graph and of the seeds are borrowed from NumPy arrays that the caller
// keeps alive and leaves unchanged for the whole call; Spreading owns its work buffers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpu.hpp"

namespace engram {

enum class SpreadFault {
    none,
    seeds_range,
    seeds_repeated,
    energy_not_finite,
    indptr_order,
    indices_range,
};

struct Graph {
    const std::int64_t* indptr;
    const std::int32_t* indices;
    const float* weights;
    std::int64_t nodes;
    std::int64_t arcs;
};

// A set of nodes that is walked in ascending order.
class NodeSet {
   public:
    explicit NodeSet(std::int64_t nodes) : words_(static_cast<std::size_t>(nodes) / 64 + 1, 0) {}

    // False if the node was in the set already.
    bool insert(std::int64_t node) {
        std::uint64_t& word = words_[static_cast<std::size_t>(node) >> 6];
        const std::uint64_t bit = std::uint64_t{1} << (node & 63);
        const bool fresh = (word & bit) == 0;
        word |= bit;
        return fresh;
    }

    template <typename Visit>
    void each(Visit visit) const {
        for (std::size_t w = 0; w < words_.size(); ++w)
            for (std::uint64_t left = words_[w]; left != 0; left &= left - 1)
                visit(static_cast<std::int64_t>(w * 64) + lowest_bit(left));
    }

    void clear() { std::fill(words_.begin(), words_.end(), 0); }

   private:
    std::vector<std::uint64_t> words_;
};

// Two sums per node, zero until touched. The table of pages costs n bytes and a page exists only
// once one of its nodes is reached, so a short walk in a large graph writes little memory; two flat
// arrays would cost 16 n bytes of clearing before the first step. A page is one cache line.
class NodeSums {
   public:
    struct Sums {
        double activation;
        double received;  // in the hop being walked
    };

    explicit NodeSums(std::int64_t nodes)
        : page_of_(static_cast<std::size_t>(nodes) / page + 1, 0) {}

    Sums& at(std::int64_t node) {
        std::uint32_t& number = page_of_[static_cast<std::size_t>(node) / page];
        if (number == 0) {
            sums_.resize(sums_.size() + page, Sums{0.0, 0.0});
            number = static_cast<std::uint32_t>(sums_.size() / page);
        }
        return sums_[(std::size_t{number} - 1) * page + static_cast<std::size_t>(node) % page];
    }

   private:
    static constexpr std::size_t page = 4;
    std::vector<std::uint32_t> page_of_;  // 0: no page yet; otherwise its number from 1
    std::vector<Sums> sums_;
};

class Spreading {
   public:
    explicit Spreading(const Graph& graph)
        : graph_(graph), sums_(graph.nodes), visited_(graph.nodes), reached_(graph.nodes) {}

    // The order of the checks is the twin's, and sums are added in the order of the frontier and
    // of its rows, so both give the same bits.
    SpreadFault run(const std::int64_t* seeds, const double* energy, std::size_t count,
                    std::int64_t depth, double decay) {
        SpreadFault fault = start(seeds, energy, count);
        for (; fault == SpreadFault::none && depth > 0 && !frontier_.empty(); --depth) {
            fault = pass_on(decay);
            if (fault == SpreadFault::none) advance();
        }
        return fault;
    }

    std::size_t size() const { return visited_count_; }

    void write(std::int64_t* nodes, double* activations) {
        visited_.each([&](std::int64_t node) {
            *nodes++ = node;
            *activations++ = sums_.at(node).activation;
        });
    }

   private:
    struct Charge {
        std::int64_t node;
        double energy;
    };

    SpreadFault start(const std::int64_t* seeds, const double* energy, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i)
            if (seeds[i] < 0 || seeds[i] >= graph_.nodes) return SpreadFault::seeds_range;
        for (std::size_t i = 0; i < count; ++i)
            if (!visited_.insert(seeds[i])) return SpreadFault::seeds_repeated;
        for (std::size_t i = 0; i < count; ++i) {
            if (!std::isfinite(energy[i])) return SpreadFault::energy_not_finite;
            if (energy[i] > 0.0) frontier_.push_back({seeds[i], energy[i]});
        }
        visited_count_ = count;
        std::sort(frontier_.begin(), frontier_.end(),
                  [](const Charge& a, const Charge& b) { return a.node < b.node; });
        return SpreadFault::none;
    }

    SpreadFault pass_on(double decay) {
        for (const Charge& from : frontier_) {
            const std::int64_t* row = graph_.indptr + from.node;
            if (row[0] < 0 || row[0] > row[1] || row[1] > graph_.arcs)
                return SpreadFault::indptr_order;
        }
        for (const Charge& from : frontier_) {
            const double passed = from.energy * decay;
            for (std::int64_t a = graph_.indptr[from.node]; a < graph_.indptr[from.node + 1]; ++a) {
                const std::int64_t node = graph_.indices[a];
                if (node < 0 || node >= graph_.nodes) return SpreadFault::indices_range;
                // Comparisons written so that a weight or a product that is not a number is 0.
                const float weight = graph_.weights[a];
                const double clamped = weight > 0.0F ? std::min(weight, 1.0F) : 0.0F;
                const double contribution = passed * clamped;
                reached_.insert(node);
                sums_.at(node).received += contribution > 0.0 ? contribution : 0.0;
            }
        }
        return SpreadFault::none;
    }

    // What this hop gave becomes activation, and the energy of the next frontier.
    void advance() {
        frontier_.clear();
        reached_.each([&](std::int64_t node) {
            NodeSums::Sums& sums = sums_.at(node);
            sums.activation += sums.received;
            if (sums.received > 0.0) frontier_.push_back({node, sums.received});
            sums.received = 0.0;
            if (visited_.insert(node)) ++visited_count_;
        });
        reached_.clear();
    }

    Graph graph_;
    NodeSums sums_;
    NodeSet visited_;
    NodeSet reached_;
    std::size_t visited_count_ = 0;
    std::vector<Charge> frontier_;  // ascending by node, energies above 0 only
};

}  // namespace engram
