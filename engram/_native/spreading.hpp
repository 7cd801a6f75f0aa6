// One hop of spreading activation over a graph in rows.
//
// Ownership: the pointers of a Graph and of the frontier are borrowed from NumPy arrays that the
// caller keeps alive and leaves unchanged for the whole call; Hop owns its work buffers.
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
    nodes_range,
    energy_not_finite,
    rows_range,
    indices_range,
};

struct Graph {
    const std::int32_t* starts;
    const std::int32_t* counts;
    const std::int32_t* indices;
    const float* weights;
    std::int64_t nodes;
    std::int64_t arcs;
};

// Sums by node in the order in which nodes are reached: a table with open addressing, so that a hop
// costs what it walks and nothing per node of the graph.
class NodeSums {
   public:
    NodeSums() : table_(first_size, 0) {}

    double& at(std::int32_t node) {
        if (2 * nodes_.size() >= table_.size()) grow();
        std::uint32_t& number = table_[place(node)];
        if (number == 0) {
            nodes_.push_back(node);
            sums_.push_back(0.0);
            number = static_cast<std::uint32_t>(nodes_.size());
        }
        return sums_[number - 1];
    }

    const std::vector<std::int32_t>& nodes() const { return nodes_; }
    const std::vector<double>& sums() const { return sums_; }

   private:
    static constexpr std::size_t first_size = 1024;  // a power of two, as every size is

    // Where the node is in the table, or the free slot it belongs in.
    std::size_t place(std::int32_t node) const {
        // Fibonacci hashing: the high half of the product mixes all bits of the node.
        const std::uint64_t mixed = static_cast<std::uint64_t>(node) * 0x9E3779B97F4A7C15U;
        std::size_t slot = static_cast<std::size_t>(mixed >> 32) & (table_.size() - 1);
        while (table_[slot] != 0 && nodes_[table_[slot] - 1] != node)
            slot = (slot + 1) & (table_.size() - 1);
        return slot;
    }

    void grow() {
        table_.assign(2 * table_.size(), 0);
        for (std::size_t i = 0; i < nodes_.size(); ++i)
            table_[place(nodes_[i])] = static_cast<std::uint32_t>(i + 1);
    }

    std::vector<std::uint32_t> table_;  // 0: free; otherwise the number of a node from 1
    std::vector<std::int32_t> nodes_;
    std::vector<double> sums_;
};

class Hop {
   public:
    explicit Hop(const Graph& graph) : graph_(graph) {}

    // The order of the checks is the twin's, and sums are added in the order of the frontier and
    // of its rows, so both give the same bits.
    SpreadFault run(const std::int64_t* frontier, const double* energy, std::size_t count,
                    double decay) {
        for (std::size_t i = 0; i < count; ++i)
            if (frontier[i] < 0 || frontier[i] >= graph_.nodes) return SpreadFault::nodes_range;
        for (std::size_t i = 0; i < count; ++i)
            if (!std::isfinite(energy[i])) return SpreadFault::energy_not_finite;
        for (std::size_t i = 0; i < count; ++i) {
            const std::int64_t start = graph_.starts[frontier[i]];
            const std::int64_t length = graph_.counts[frontier[i]];
            if (start < 0 || length < 0 || start + length > graph_.arcs)
                return SpreadFault::rows_range;
        }
        for (std::size_t i = 0; i < count; ++i)
            if (!pass_on(frontier[i], energy[i] * decay)) return SpreadFault::indices_range;
        return SpreadFault::none;
    }

    std::size_t size() const { return received_.nodes().size(); }

    void write(std::int64_t* nodes, double* received) const {
        std::copy(received_.nodes().begin(), received_.nodes().end(), nodes);
        std::copy(received_.sums().begin(), received_.sums().end(), received);
    }

   private:
    // False if an arc leads out of the graph.
    bool pass_on(std::int64_t from, double passed) {
        const std::int64_t start = graph_.starts[from];
        for (std::int64_t a = start; a < start + graph_.counts[from]; ++a) {
            const std::int32_t node = graph_.indices[a];
            if (node < 0 || node >= graph_.nodes) return false;
            // Comparisons written so that a weight or a product that is not a number is 0.
            const float weight = graph_.weights[a];
            const double clamped = weight > 0.0F ? std::min(weight, 1.0F) : 0.0F;
            const double contribution = passed * clamped;
            if (contribution > 0.0) received_.at(node) += contribution;
        }
        return true;
    }

    Graph graph_;
    NodeSums received_;
};

}  // namespace engram
