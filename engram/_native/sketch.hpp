// Vectors as one byte per number, and what can be said about dot products from those alone.
//
// A code is a byte u that stands for scale * (u - 128), one scale per row. Its halves lie in two
// planes, so that a rough answer reads half of the bytes. Both planes have blocks of 16 bytes for
// 32 numbers: byte j holds number j in its low half and number j + 16 in its high half, and the
// planes combine into bytes by masks and shifts alone. All sums are integers, so every machine
// gives the same bits.
//
// Ownership: every pointer is borrowed from a NumPy array that the caller keeps alive and leaves
// unchanged for the whole call, but for those that a function writes to.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "cpu.hpp"

#ifdef ENGRAM_AVX2
#include <immintrin.h>
#endif

namespace engram {

constexpr std::size_t block_numbers = 32;
constexpr std::size_t block_bytes = 16;
constexpr int code_zero = 128;  // the code that stands for 0
constexpr std::size_t error_lanes = 8;

inline std::size_t code_bytes(std::size_t dims) {
    return (dims + block_numbers - 1) / block_numbers * block_bytes;
}

// Rounds half to even as the processor does, without a call: a float of this size has no fraction.
ENGRAM_INLINE float rounded(float value) {
    constexpr float shift = 12582912.0f;
    return (value + shift) - shift;
}

// The codes of one block, and what they lose, added to `lanes` in squares.
ENGRAM_INLINE void encode_block(const float* numbers, float scale, std::uint8_t* high,
                                std::uint8_t* low, double* lanes) {
    float steps[block_numbers];
    std::uint8_t codes[block_numbers];
    const float divisor = scale > 0.0f ? scale : std::numeric_limits<float>::infinity();
    for (std::size_t j = 0; j < block_numbers; ++j) {
        float step = numbers[j] / divisor;
        step = step > -128.0f ? step : -128.0f;  // also where a tiny scale was rounded down
        step = rounded(step < 127.0f ? step : 127.0f);
        steps[j] = step;
        codes[j] = static_cast<std::uint8_t>(static_cast<int>(step) + code_zero);
    }
    for (std::size_t j = 0; j < block_numbers; j += error_lanes)
        for (std::size_t l = 0; l < error_lanes; ++l) {
            const double lost = static_cast<double>(numbers[j + l]) -
                                static_cast<double>(scale) * static_cast<double>(steps[j + l]);
            lanes[l] += lost * lost;
        }
    for (std::size_t j = 0; j < block_bytes; ++j) {
        const unsigned first = codes[j];
        const unsigned second = codes[j + block_bytes];
        high[j] = static_cast<std::uint8_t>((first >> 4) | (second & 0xf0u));
        low[j] = static_cast<std::uint8_t>((first & 0x0fu) | (second << 4));
    }
}

ENGRAM_INLINE float rounded_up(double value) {
    const float near = static_cast<float>(value);
    if (static_cast<double>(near) >= value) return near;
    return std::nextafter(near, std::numeric_limits<float>::infinity());
}

// The largest size in separate lanes, which a compiler may keep in one register.
ENGRAM_INLINE float largest_size(const float* numbers, std::size_t count) {
    float lanes[error_lanes] = {};
    std::size_t i = 0;
    for (; i + error_lanes <= count; i += error_lanes)
        for (std::size_t l = 0; l < error_lanes; ++l) {
            const float size = std::fabs(numbers[i + l]);
            lanes[l] = size > lanes[l] ? size : lanes[l];
        }
    for (; i < count; ++i) lanes[0] = std::max(lanes[0], std::fabs(numbers[i]));
    return *std::max_element(lanes, lanes + error_lanes);
}

struct EncodedRows {
    std::uint8_t* high;
    std::uint8_t* low;
    float* scales;
    float* errors;
};

ENGRAM_INLINE void encode_rows(const float* vectors, std::size_t rows, std::size_t dims,
                               const EncodedRows& out) {
    // Far above what 2^20 additions and the root can lose.
    constexpr double margin = 1.0 + 0x1p-30;
    const std::size_t blocks = code_bytes(dims) / block_bytes;
    for (std::size_t r = 0; r < rows; ++r, vectors += dims) {
        const float scale = largest_size(vectors, dims) / 127.0f;
        double lanes[error_lanes] = {};
        for (std::size_t b = 0; b < blocks; ++b) {
            const std::size_t first = b * block_numbers;
            const std::size_t at = (r * blocks + b) * block_bytes;
            const float* numbers = vectors + first;
            float padded[block_numbers] = {};
            if (dims - first < block_numbers) {
                std::memcpy(padded, numbers, (dims - first) * sizeof(float));
                numbers = padded;
            }
            encode_block(numbers, scale, out.high + at, out.low + at, lanes);
        }
        for (std::size_t half = error_lanes / 2; half > 0; half /= 2)
            for (std::size_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
        out.scales[r] = scale;
        out.errors[r] = rounded_up(std::sqrt(lanes[0]) * margin);
    }
}

#ifdef ENGRAM_AVX2
ENGRAM_AVX2 inline void encode_avx2(const float* vectors, std::size_t rows, std::size_t dims,
                                    const EncodedRows& out) {
    encode_rows(vectors, rows, dims, out);
}
#endif

inline void encode(const float* vectors, std::size_t rows, std::size_t dims,
                   const EncodedRows& out) {
#ifdef ENGRAM_AVX2
    if (cpu_has_avx2()) return encode_avx2(vectors, rows, dims, out);
#endif
    encode_rows(vectors, rows, dims, out);
}

inline void decode(const std::uint8_t* high, const std::uint8_t* low, const float* scales,
                   std::size_t rows, std::size_t dims, float* out) {
    const std::size_t bytes = code_bytes(dims);
    for (std::size_t r = 0; r < rows; ++r, high += bytes, low += bytes, out += dims) {
        for (std::size_t i = 0; i < dims; ++i) {
            const std::size_t at = i / block_numbers * block_bytes + i % block_bytes;
            const unsigned shift = i % block_numbers < block_bytes ? 0 : 4;
            const unsigned code = (((high[at] >> shift) & 15u) << 4) | ((low[at] >> shift) & 15u);
            out[i] = scales[r] * static_cast<float>(static_cast<int>(code) - code_zero);
        }
    }
}

// A query in the order in which the planes unpack. Two blocks, 64 numbers, make four groups of 16:
// the even and the odd ones of the first halves of both blocks, then those of the second halves.
constexpr std::size_t query_group = 64;

inline std::size_t query_position(std::size_t number) {
    const std::size_t within = number % block_numbers;
    const std::size_t group = within / 16 * 2 + within % 2;
    const std::size_t block = number % query_group / block_numbers;
    return number / query_group * query_group + group * 16 + block * 8 + within % 16 / 2;
}

// The codes' sizes may add up to this much: 255 times it is within 32 bits.
constexpr std::int64_t query_reach = std::numeric_limits<std::int32_t>::max() / 255;

// Returns the scale: number i of the query is about scale * out[query_position(i)].
inline double query_codes(const float* query, std::size_t dims, std::int16_t* out) {
    constexpr double largest_code = 32767.0;
    double largest = 0.0;
    double total = 0.0;
    for (std::size_t i = 0; i < dims; ++i) {
        const double size = std::fabs(static_cast<double>(query[i]));
        largest = size > largest ? size : largest;
        total += size;
    }
    // Rounding adds at most a half to each code.
    const double reach = static_cast<double>(query_reach) - static_cast<double>(dims);
    const double scale = std::max(largest / largest_code, total / reach);
    for (std::size_t i = 0; i < dims; ++i) {
        const double steps = scale > 0.0 ? static_cast<double>(query[i]) / scale : 0.0;
        const double code = std::nearbyint(std::min(std::max(steps, -largest_code), largest_code));
        out[query_position(i)] = static_cast<std::int16_t>(code);
    }
    return scale;
}

struct QueryCodes {
    const std::int16_t* codes;
    std::size_t count;
    std::int64_t sum;      // of the codes
    std::int64_t sizes;    // of their absolute values
    std::int64_t squares;  // of their squares
};

inline QueryCodes summed_query(const std::int16_t* codes, std::size_t count) {
    QueryCodes query{codes, count, 0, 0, 0};
    for (std::size_t i = 0; i < count; ++i) {
        const std::int64_t code = codes[i];
        query.sum += code;
        query.sizes += code < 0 ? -code : code;
        query.squares += code * code;
    }
    return query;
}

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

    ENGRAM_INLINE void prefetch_row(const std::uint8_t* row) const {
        constexpr std::size_t line = 64;
        for (std::size_t i = 0; i < bytes; i += line) ENGRAM_PREFETCH(row + i);
        ENGRAM_PREFETCH(row + bytes - 1);  // a row need not begin where a line does
    }

    // Listed rows lie anywhere, which the hardware cannot guess: ask for one before its turn.
    // Inlined by order: GCC drops calls of a function that does nothing but prefetch.
    ENGRAM_INLINE void prefetch(std::size_t position) const {
        constexpr std::size_t ahead = 16;
        if (rows == nullptr || position + ahead >= count) return;
        const std::size_t next = rows[position + ahead];
        prefetch_row(high + next * bytes);
        if (low != nullptr) prefetch_row(low + next * bytes);
        ENGRAM_PREFETCH(scales + next);
        if (errors != nullptr) ENGRAM_PREFETCH(errors + next);
    }
};

// Rows are read some at a time, so that a processor can work on several sums at once.
constexpr std::size_t batch_rows = 16;

struct Batch {
    std::size_t count = 0;
    std::uint32_t rows[batch_rows];
    std::int32_t dots[batch_rows];
};

// The sum of query code times code over one row; without `low`, of query code times high half.
inline std::int32_t code_dot_plain(const std::uint8_t* high, const std::uint8_t* low,
                                   const std::int16_t* query, std::size_t bytes) {
    std::int32_t sum = 0;
    for (std::size_t b = 0; b < bytes; b += block_bytes) {
        const std::int16_t* codes = query + b / 32 * query_group + b % 32 / 2;
        for (std::size_t j = 0; j < block_bytes; ++j) {
            std::int32_t first = high[b + j] & 15;
            std::int32_t second = high[b + j] >> 4;
            if (low != nullptr) {
                first = first << 4 | (low[b + j] & 15);
                second = second << 4 | low[b + j] >> 4;
            }
            const std::int16_t* at = codes + j % 2 * 16 + j / 2;
            sum += at[0] * first + at[32] * second;
        }
    }
    return sum;
}

#ifdef ENGRAM_AVX2
// 16 numbers of each group: even and odd bytes of `first` and `second` as 16-bit numbers.
ENGRAM_AVX2 ENGRAM_INLINE __m256i weighted(__m256i first, __m256i second, const __m256i* query) {
    const __m256i byte = _mm256_set1_epi16(0xff);
    const __m256i a = _mm256_madd_epi16(_mm256_and_si256(first, byte), _mm256_loadu_si256(query));
    const __m256i b =
        _mm256_madd_epi16(_mm256_srli_epi16(first, 8), _mm256_loadu_si256(query + 1));
    const __m256i c =
        _mm256_madd_epi16(_mm256_and_si256(second, byte), _mm256_loadu_si256(query + 2));
    const __m256i d =
        _mm256_madd_epi16(_mm256_srli_epi16(second, 8), _mm256_loadu_si256(query + 3));
    return _mm256_add_epi32(_mm256_add_epi32(a, b), _mm256_add_epi32(c, d));
}

// The query-weighted sums of two blocks; of one, with zeros for its neighbour, as the query has.
ENGRAM_AVX2 ENGRAM_INLINE __m256i two_blocks(__m256i h, const std::uint8_t* low,
                                             const std::int16_t* query, bool one) {
    const __m256i lower = _mm256_set1_epi8(0x0f);
    const __m256i upper = _mm256_set1_epi8(static_cast<char>(0xf0));
    const __m256i* codes = reinterpret_cast<const __m256i*>(query);
    if (low == nullptr)
        return weighted(_mm256_and_si256(h, lower),
                        _mm256_and_si256(_mm256_srli_epi16(h, 4), lower), codes);
    const __m256i l = one ? _mm256_zextsi128_si256(
                                _mm_loadu_si128(reinterpret_cast<const __m128i*>(low)))
                          : _mm256_loadu_si256(reinterpret_cast<const __m256i*>(low));
    return weighted(
        _mm256_or_si256(_mm256_and_si256(_mm256_slli_epi16(h, 4), upper),
                        _mm256_and_si256(l, lower)),
        _mm256_or_si256(_mm256_and_si256(h, upper),
                        _mm256_and_si256(_mm256_srli_epi16(l, 4), lower)),
        codes);
}

template <bool whole>
ENGRAM_AVX2 ENGRAM_INLINE std::int32_t code_sum(const std::uint8_t* high, const std::uint8_t* low,
                                                const std::int16_t* query, std::size_t bytes) {
    __m256i sums = _mm256_setzero_si256();
    std::size_t i = 0;
    for (; i + 2 * block_bytes <= bytes; i += 2 * block_bytes) {
        const __m256i h = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(high + i));
        sums = _mm256_add_epi32(
            sums, two_blocks(h, whole ? low + i : nullptr, query + 2 * i, false));
    }
    if (i < bytes) {
        const __m256i h = _mm256_zextsi128_si256(
            _mm_loadu_si128(reinterpret_cast<const __m128i*>(high + i)));
        sums =
            _mm256_add_epi32(sums, two_blocks(h, whole ? low + i : nullptr, query + 2 * i, true));
    }
    const __m128i four =
        _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
    const __m128i two = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xb1)));
}

ENGRAM_AVX2 inline void code_dots_avx2(const CodeRows& in, const std::int16_t* query,
                                       Batch& batch) {
    for (std::size_t i = 0; i < batch.count; ++i) {
        const std::size_t at = std::size_t{batch.rows[i]} * in.bytes;
        batch.dots[i] = in.low == nullptr
                            ? code_sum<false>(in.high + at, nullptr, query, in.bytes)
                            : code_sum<true>(in.high + at, in.low + at, query, in.bytes);
    }
}
#endif

inline void code_dots(const CodeRows& in, const std::int16_t* query, Batch& batch) {
#ifdef ENGRAM_AVX2
    if (cpu_has_avx2()) return code_dots_avx2(in, query, batch);
#endif
    for (std::size_t i = 0; i < batch.count; ++i) {
        const std::size_t at = std::size_t{batch.rows[i]} * in.bytes;
        const std::uint8_t* low = in.low == nullptr ? nullptr : in.low + at;
        batch.dots[i] = code_dot_plain(in.high + at, low, query, in.bytes);
    }
}

}  // namespace engram
