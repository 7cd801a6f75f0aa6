// Hybrid blending: min-max normalisation of two pools, their union, the best k.
//
// Ownership: every pointer is borrowed from a NumPy array that the caller keeps alive and leaves
// unchanged for the whole call; the vectors are owned by the function that makes them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace engram {

enum class BlendFault {
    none,
    vector_not_finite,
    vector_repeated,
    text_not_finite,
    text_repeated,
};

struct Scored {
    std::int64_t key;
    double score;
};

struct Pool {
    const std::int64_t* keys;
    const double* scores;
    std::size_t size;

    bool finite() const {
        return std::all_of(scores, scores + size, [](double x) { return std::isfinite(x); });
    }

    // The members by key, their scores mapped linearly so that lo is 0 and hi is 1.
    std::vector<Scored> normalised() const {
        std::vector<Scored> members;
        if (size == 0) return members;
        members.reserve(size);
        const auto [least, most] = std::minmax_element(scores, scores + size);
        // Halves keep the difference of two huge scores finite; elsewhere they would cost bits.
        const double scale = std::isfinite(*most - *least) ? 1.0 : 0.5;
        const double lo = *least * scale;
        const double span = *most * scale - lo;
        // `span > 0` rather than `lo < hi`: it also holds off 0/0 where subnormals are flushed.
        for (std::size_t i = 0; i < size; ++i)
            members.push_back({keys[i], span > 0.0 ? (scores[i] * scale - lo) / span : 1.0});
        std::sort(members.begin(), members.end(),
                  [](const Scored& a, const Scored& b) { return a.key < b.key; });
        return members;
    }
};

inline bool repeated(const std::vector<Scored>& by_key) {
    return std::adjacent_find(by_key.begin(), by_key.end(), [](const Scored& a, const Scored& b) {
               return a.key == b.key;
           }) != by_key.end();
}

// The order of the checks is the twin's. On success writes `found` pairs, at most `limit`.
inline BlendFault blend(const Pool& vector_pool, const Pool& text_pool, double vector_weight,
                        double text_weight, std::size_t limit, std::int64_t* out_keys,
                        double* out_scores, std::size_t& found) {
    found = 0;
    if (!vector_pool.finite()) return BlendFault::vector_not_finite;
    const std::vector<Scored> vectors = vector_pool.normalised();
    if (repeated(vectors)) return BlendFault::vector_repeated;
    if (!text_pool.finite()) return BlendFault::text_not_finite;
    const std::vector<Scored> texts = text_pool.normalised();
    if (repeated(texts)) return BlendFault::text_repeated;

    if (!std::isfinite(vector_weight + text_weight)) {
        vector_weight *= 0.5;
        text_weight *= 0.5;
    }
    const double total = vector_weight + text_weight;
    std::vector<Scored> blended;
    blended.reserve(vectors.size() + texts.size());
    auto v = vectors.begin();
    auto t = texts.begin();
    while (v != vectors.end() || t != texts.end()) {
        const bool has_vector = v != vectors.end() && (t == texts.end() || v->key <= t->key);
        const bool has_text = t != texts.end() && (v == vectors.end() || t->key <= v->key);
        const std::int64_t key = has_vector ? v->key : t->key;
        const double vector_score = has_vector ? (v++)->score : 0.0;
        const double text_score = has_text ? (t++)->score : 0.0;
        blended.push_back(
            {key, (vector_weight * vector_score + text_weight * text_score) / total});
    }

    found = std::min(limit, blended.size());
    std::partial_sort(blended.begin(), blended.begin() + static_cast<std::ptrdiff_t>(found),
                      blended.end(), [](const Scored& a, const Scored& b) {
                          return a.score > b.score || (a.score == b.score && a.key < b.key);
                      });
    for (std::size_t i = 0; i < found; ++i) {
        out_keys[i] = blended[i].key;
        out_scores[i] = blended[i].score;
    }
    return BlendFault::none;
}

}  // namespace engram
