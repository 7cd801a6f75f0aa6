// Importance of many episodes at one moment.
//
// Ownership: every pointer is borrowed from a NumPy array that the caller keeps alive and leaves
// unchanged for the whole call; nothing is allocated here.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "cpu.hpp"

namespace engram {

constexpr double microseconds_per_day = 86'400'000'000.0;

constexpr std::size_t decay_block = 256;

struct DecayInput {
    const double* salience;
    const double* valence;
    const std::int64_t* access_count;
    const std::int64_t* baseline;  // microseconds since the epoch, UTC
    std::int64_t now;              // microseconds since the epoch, UTC
    double lambda;                 // per day, at least 0
    double alpha;
    double beta;
};

ENGRAM_INLINE double double_of_bits(std::uint64_t bits) {
    double value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

ENGRAM_INLINE std::uint64_t bits_of_double(double value) {
    std::uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

// Unsigned to double, correctly rounded, in operations that vectorise without AVX-512: each half is
// planted in the low bits of a power of two, and only the last addition rounds.
ENGRAM_INLINE double double_of_unsigned(std::uint64_t value) {
    const double low = double_of_bits((value & 0xffffffffU) | 0x4330000000000000U);  // 2^52 + low
    const double high = double_of_bits((value >> 32) | 0x4530000000000000U);  // 2^84 + high * 2^32
    return (high - (0x1p84 + 0x1p52)) + low;
}

// 2^n for a whole number n in [-1022, 1023] held in a double.
ENGRAM_INLINE double power_of_two(double n) {
    constexpr double to_low_bits = 0x1.8p52;
    return double_of_bits((bits_of_double(n + to_low_bits) + 1023U) << 52);
}

// exp(x) for x <= 0, within 1 ulp, without a branch or a library call, so that the loop around it
// vectorises and every machine gives the same bits. Cody and Waite's reduction x = n ln2 + r, then
// the Taylor series of exp(r), whose remainder at |r| <= ln2 / 2 is below 2^-57.
ENGRAM_INLINE double exp_of_negative(double x) {
    constexpr double ln2_high = 0x1.62e42fee00000p-1;  // trailing zeros make n * ln2_high exact
    constexpr double ln2_low = 0x1.a39ef35793c76p-33;
    constexpr double inverse_ln2 = 0x1.71547652b82fep+0;
    constexpr double to_nearest = 0x1.8p52;
    x = x > -746.0 ? x : -746.0;  // exp(-746) already rounds to 0
    const double n = (x * inverse_ln2 + to_nearest) - to_nearest;
    const double r = (x - n * ln2_high) - n * ln2_low;
    double p = 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = 1.0 + (r + (r * r) * p);
    // Two factors: the first keeps the product normal, so a subnormal result rounds once.
    const double normal = n > -1000.0 ? n : -1000.0;
    return (p * power_of_two(normal)) * power_of_two(n - normal);
}

// ln(1 + count). Nearly every count is small, and a table is quicker than the library.
class AccessLogarithm {
   public:
    AccessLogarithm() {
        for (std::size_t i = 0; i < table_.size(); ++i)
            table_[i] = std::log1p(static_cast<double>(i));
    }

    double operator()(std::int64_t count) const {
        const auto index = static_cast<std::uint64_t>(count);  // a negative count is out of range
        return index < table_.size() ? table_[index] : std::log1p(static_cast<double>(count));
    }

   private:
    std::array<double, 256> table_;
};

ENGRAM_INLINE void importance_of(const DecayInput& in, std::size_t first, std::size_t last,
                                 const double* logarithms, double* out) {
    for (std::size_t i = first; i < last; ++i) {
        // Unsigned subtraction: the distance of two int64 always fits, their difference may not.
        const std::uint64_t age = in.now > in.baseline[i]
                                      ? static_cast<std::uint64_t>(in.now) -
                                            static_cast<std::uint64_t>(in.baseline[i])
                                      : 0U;
        const double days = double_of_unsigned(age) / microseconds_per_day;
        out[i] = in.salience[i] * exp_of_negative(-in.lambda * days) +
                 in.alpha * logarithms[i - first] + in.beta * in.valence[i];
    }
}

#ifdef ENGRAM_AVX2
ENGRAM_AVX2 inline void importance_avx2(const DecayInput& in, std::size_t first, std::size_t last,
                                        const double* logarithms, double* out) {
    importance_of(in, first, last, logarithms, out);
}
#endif

inline void importance(const DecayInput& in, std::size_t first, std::size_t last,
                       const double* logarithms, double* out) {
#ifdef ENGRAM_AVX2
    if (cpu_has_avx2()) return importance_avx2(in, first, last, logarithms, out);
#endif
    importance_of(in, first, last, logarithms, out);
}

// Writes `count` values; false, and values that mean nothing, if an access count is negative.
inline bool decay(const DecayInput& in, std::size_t count, double* out) {
    static const AccessLogarithm logarithm;
    double logarithms[decay_block];
    std::int64_t signs = 0;
    for (std::size_t first = 0; first < count; first += decay_block) {
        const std::size_t last = std::min(first + decay_block, count);
        for (std::size_t i = first; i < last; ++i) {
            signs |= in.access_count[i];
            logarithms[i - first] = logarithm(in.access_count[i]);
        }
        importance(in, first, last, logarithms, out);
    }
    return signs >= 0;
}

}  // namespace engram
