// Sign bits of vectors, and the rows of smallest Hamming distance between them.
//
// One pass over the bits at the speed of memory writes every distance; the rest works on those, 2
// bytes a row. A mask costs only where a distance is small enough to matter. Two levels (half of
// the bits first, the other half for the best 20,000) were measured and are not worth it: as
// slow at a million rows of 384 bits, where the counting hides behind memory, and 0.5 % less recall.
//
// Ownership: every pointer is borrowed from a NumPy array that the caller keeps alive and leaves
// unchanged for the whole call, but for what it writes to, which only this call touches; owned here are
// the vectors.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "cpu.hpp"

#ifdef ENGRAM_AVX2
#include <immintrin.h>
#endif

namespace engram {

// Which rows count: those of allowed owners. An owner beyond the mask is not allowed.
struct RowMask {
    const std::uint8_t* allowed;  // null: every row
    std::size_t count;
    const std::uint32_t* owners;  // null: a row is its own owner

    std::size_t owner(std::size_t row) const { return owners == nullptr ? row : owners[row]; }

    bool allows(std::size_t owner) const {
        return allowed == nullptr || (owner < count && allowed[owner] != 0);
    }
};

struct BitRows {
    const std::uint64_t* bits;
    std::size_t rows;
    std::size_t words;
};

inline void sign_bits(const float* vectors, const float* centre, std::size_t rows,
                      std::size_t dims, std::uint64_t* out) {
    for (std::size_t r = 0; r < rows; ++r, vectors += dims) {
        for (std::size_t first = 0; first < dims; first += 64) {
            const std::size_t count = std::min<std::size_t>(64, dims - first);
            std::uint64_t word = 0;
            for (std::size_t i = 0; i < count; ++i)
                word |= static_cast<std::uint64_t>(vectors[first + i] > centre[first + i]) << i;
            *out++ = word;
        }
    }
}

// Words to ask for ahead of a scan, and not to keep: a million rows would push all else out of the
// processor's caches.
constexpr std::size_t scan_ahead = 512;

inline unsigned bit_count_plain(std::uint64_t word) {
    word -= (word >> 1) & 0x5555555555555555u;
    word = (word & 0x3333333333333333u) + ((word >> 2) & 0x3333333333333333u);
    word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return static_cast<unsigned>((word * 0x0101010101010101u) >> 56);
}

inline void distances_plain(const BitRows& in, const std::uint64_t* query, std::uint16_t* out) {
    const std::uint64_t* row = in.bits;
    for (std::size_t r = 0; r < in.rows; ++r, row += in.words) {
        unsigned sum = 0;
        for (std::size_t i = 0; i < in.words; ++i) sum += bit_count_plain(row[i] ^ query[i]);
        out[r] = static_cast<std::uint16_t>(sum);
    }
}

#ifdef ENGRAM_AVX2
// With `fixed` words the compiler unrolls the loop, which takes half the time; 0 is any number.
template <std::size_t fixed>
ENGRAM_POPCNT inline void distances_popcnt(const BitRows& in, const std::uint64_t* query,
                                           std::uint16_t* out) {
    const std::size_t words = fixed != 0 ? fixed : in.words;
    const std::uint64_t* row = in.bits;
    for (std::size_t r = 0; r < in.rows; ++r, row += words) {
        unsigned sum = 0;
        for (std::size_t i = 0; i < words; ++i)
            sum += static_cast<unsigned>(__builtin_popcountll(row[i] ^ query[i]));
        out[r] = static_cast<std::uint16_t>(sum);
    }
}

// Eight rows at a time, a row in a register. Each lane counts at most 64 bits of each 512, so the
// counts of four rows share a lane and three additions sum the lanes of eight rows: a distance fits
// 16 bits, and so does every part of it.
ENGRAM_AVX512_POPCNT inline void distances_avx512(const BitRows& in, const std::uint64_t* query,
                                                  std::uint16_t* out) {
    constexpr std::size_t step = 8;
    std::size_t r = 0;
    for (; r + step <= in.rows; r += step) {
        const std::uint64_t* row = in.bits + r * in.words;
        __m512i sums[step];
        for (std::size_t k = 0; k < step; ++k) {
            sums[k] = _mm512_setzero_si512();
            ENGRAM_PREFETCH_ONCE(row + k * in.words + scan_ahead);
        }
        for (std::size_t i = 0; i < in.words; i += 8) {
            const std::size_t left = in.words - i;
            const __mmask8 mask = static_cast<__mmask8>(left < 8 ? (1u << left) - 1 : 0xffu);
            const __m512i wanted = _mm512_maskz_loadu_epi64(mask, query + i);
            for (std::size_t k = 0; k < step; ++k) {
                const __m512i found = _mm512_maskz_loadu_epi64(mask, row + k * in.words + i);
                const __m512i differing = _mm512_popcnt_epi64(_mm512_xor_si512(found, wanted));
                sums[k] = _mm512_add_epi64(sums[k], differing);
            }
        }
        __m512i four[2];
        for (std::size_t k = 0; k < 2; ++k) {
            const __m512i* s = sums + 4 * k;
            const __m512i low = _mm512_or_si512(s[0], _mm512_slli_epi64(s[1], 16));
            const __m512i high =
                _mm512_or_si512(_mm512_slli_epi64(s[2], 32), _mm512_slli_epi64(s[3], 48));
            four[k] = _mm512_or_si512(low, high);
        }
        const __m512i eight = _mm512_add_epi64(_mm512_unpacklo_epi64(four[0], four[1]),
                                               _mm512_unpackhi_epi64(four[0], four[1]));
        const __m256i half = _mm256_add_epi64(_mm512_castsi512_si256(eight),
                                              _mm512_extracti64x4_epi64(eight, 1));
        const __m128i done =
            _mm_add_epi64(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(out + r), done);
    }
    const BitRows rest{in.bits + r * in.words, in.rows - r, in.words};
    distances_popcnt<0>(rest, query, out + r);
}
#endif

inline void distances_of(const BitRows& in, const std::uint64_t* query, std::uint16_t* out) {
#ifdef ENGRAM_AVX2
    constexpr std::size_t packaged_model = 6;  // 384 dimensions
    if (cpu_has_avx512_popcnt()) return distances_avx512(in, query, out);
    if (cpu_has_popcnt())
        return in.words == packaged_model ? distances_popcnt<packaged_model>(in, query, out)
                                          : distances_popcnt<0>(in, query, out);
#endif
    distances_plain(in, query, out);
}

// Appends the counting rows from `first` on within `most`.
inline void rows_within_plain(const std::uint16_t* distances, std::size_t first, std::size_t rows,
                              std::uint16_t most, const RowMask& mask,
                              std::vector<std::uint32_t>& found) {
    for (std::size_t r = first; r < rows; ++r)
        if (distances[r] <= most && mask.allows(mask.owner(r)))
            found.push_back(static_cast<std::uint32_t>(r));
}

#ifdef ENGRAM_AVX2
ENGRAM_AVX2 inline void rows_within_avx2(const std::uint16_t* distances, std::size_t rows,
                                         std::uint16_t most, const RowMask& mask,
                                         std::vector<std::uint32_t>& found) {
    constexpr std::size_t step = 16;
    const __m256i bound = _mm256_set1_epi16(static_cast<short>(most));
    std::size_t r = 0;
    for (; r + step <= rows; r += step) {
        const __m256i each = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(distances + r));
        const __m256i within = _mm256_cmpeq_epi16(_mm256_min_epu16(each, bound), each);
        // Two bits a row; one of them is enough.
        std::uint64_t set = static_cast<std::uint32_t>(_mm256_movemask_epi8(within)) & 0x55555555u;
        for (; set != 0; set &= set - 1) {
            const std::size_t row = r + static_cast<std::size_t>(lowest_bit(set)) / 2;
            if (mask.allows(mask.owner(row))) found.push_back(static_cast<std::uint32_t>(row));
        }
    }
    rows_within_plain(distances, r, rows, most, mask, found);
}
#endif

inline void rows_within(const std::uint16_t* distances, std::size_t rows, std::uint16_t most,
                        const RowMask& mask, std::vector<std::uint32_t>& found) {
#ifdef ENGRAM_AVX2
    if (cpu_has_avx2()) return rows_within_avx2(distances, rows, most, mask, found);
#endif
    rows_within_plain(distances, 0, rows, most, mask, found);
}

// A distance within which `limit` counting rows very probably lie, judged by one row of every 32:
// counting all of them one by one would take as long as a third of the pass over the bits. Which one
// changes without a period, for masks can have one: agents that write in turn, say.
inline std::uint16_t likely_bound(const std::uint16_t* distances, std::size_t rows,
                                  std::size_t limit, const RowMask& mask, std::size_t levels) {
    constexpr std::size_t stride = 32;
    std::vector<std::size_t> histogram(levels);
    for (std::size_t first = 0; first < rows; first += stride) {
        // The upper bits of a product with 2^32 divided by the golden ratio (Knuth, TAOCP 3, 6.4).
        const auto scattered = static_cast<std::uint32_t>(first / stride) * 2654435769u;
        const std::size_t r = first + (scattered >> 27);
        if (r < rows && mask.allows(mask.owner(r))) ++histogram[distances[r]];
    }
    // Four standard deviations of such a count more than its mean, and then some for small ones.
    const double mean = static_cast<double>(limit) / static_cast<double>(stride);
    const double enough = mean + 4 * std::sqrt(mean) + 8;
    std::size_t seen = 0;
    for (std::size_t d = 0; d < levels; ++d) {
        seen += histogram[d];
        if (static_cast<double>(seen) >= enough) return static_cast<std::uint16_t>(d);
    }
    return std::numeric_limits<std::uint16_t>::max();
}

// Keeps the `limit` rows of smallest distance, in their order; ties at the cut to earlier rows.
inline void keep_nearest(const std::uint16_t* distances, std::size_t limit, std::size_t levels,
                         std::vector<std::uint32_t>& rows) {
    if (rows.size() <= limit) return;
    std::vector<std::size_t> histogram(levels);
    for (const std::uint32_t row : rows) ++histogram[distances[row]];
    std::size_t cut = 0;
    std::size_t ties = limit;  // how many rows at the cut are kept
    for (; histogram[cut] < ties; ++cut) ties -= histogram[cut];
    std::size_t kept = 0;
    for (const std::uint32_t row : rows) {
        if (distances[row] > cut) continue;
        if (distances[row] == cut) {
            if (ties == 0) continue;
            --ties;
        }
        rows[kept++] = row;
    }
    rows.resize(kept);
}

// The `limit` nearest of the rows within `most`, in their order; fewer where there are fewer.
inline std::vector<std::uint32_t> nearest_within(const std::uint16_t* distances, std::size_t rows,
                                                 std::size_t limit, std::uint16_t most,
                                                 std::size_t levels, const RowMask& mask) {
    std::vector<std::uint32_t> found;
    const std::uint16_t bound =
        std::min(most, likely_bound(distances, rows, limit, mask, levels));
    rows_within(distances, rows, bound, mask, found);
    if (found.size() < limit && bound < most) {
        found.clear();
        rows_within(distances, rows, most, mask, found);
    }
    keep_nearest(distances, limit, levels, found);
    return found;
}

// `k` is at most `limit`.
inline std::vector<std::uint32_t> hamming_nearest(const BitRows& in, const std::uint64_t* query,
                                                  const RowMask& mask, std::size_t k,
                                                  std::size_t margin, std::size_t limit,
                                                  std::uint16_t* distances) {
    constexpr std::uint16_t farthest = std::numeric_limits<std::uint16_t>::max();
    const std::size_t levels = in.words * 64 + 1;
    distances_of(in, query, distances);
    const auto best = nearest_within(distances, in.rows, k, farthest, levels, mask);
    if (best.size() < k) return best;  // there are no more
    std::size_t edge = 0;
    for (const std::uint32_t row : best) edge = std::max<std::size_t>(edge, distances[row]);
    const std::size_t most = std::min<std::size_t>(edge + margin, farthest);
    return nearest_within(distances, in.rows, limit, static_cast<std::uint16_t>(most), levels, mask);
}

}  // namespace engram
