// What depends on the compiler and the processor; plain C++17 everywhere else.
//
// The run-time CPU switch: on x86-64 a loop that gains from wide registers exists for the baseline
// and for AVX2, one that counts bits for their instructions too. Other processors and compilers, and builds with ENGRAM_PLAIN defined, have
// the plain loop only. Both do the same operations in the same order (no contraction, no
// reassociation), so the choice never changes a result.
#pragma once

#include <cstdint>

#if defined(__GNUC__)
#define ENGRAM_INLINE inline __attribute__((always_inline))
#define ENGRAM_PREFETCH(address) __builtin_prefetch(address)
#define ENGRAM_PREFETCH_ONCE(address) __builtin_prefetch(address, 0, 0)
#else
#define ENGRAM_INLINE inline
#define ENGRAM_PREFETCH(address) ((void)(address))
#define ENGRAM_PREFETCH_ONCE(address) ((void)(address))
#endif

#if defined(__GNUC__) && defined(__x86_64__) && !defined(ENGRAM_PLAIN)
#define ENGRAM_AVX2 __attribute__((target("avx2")))
#define ENGRAM_POPCNT __attribute__((target("popcnt")))
#define ENGRAM_AVX512_POPCNT __attribute__((target("avx512f,avx512vpopcntdq,popcnt")))
#endif

namespace engram {

// The position of the lowest set bit; `word` is not 0.
inline int lowest_bit(std::uint64_t word) {
#if defined(__GNUC__)
    return __builtin_ctzll(word);
#else
    int position = 0;
    for (; (word & 1) == 0; word >>= 1) ++position;
    return position;
#endif
}

#ifdef ENGRAM_AVX2
inline bool cpu_has_avx2() {
    static const bool answer = __builtin_cpu_supports("avx2") != 0;
    return answer;
}

inline bool cpu_has_popcnt() {
    static const bool answer = __builtin_cpu_supports("popcnt") != 0;
    return answer;
}

inline bool cpu_has_avx512_popcnt() {
    static const bool answer = cpu_has_popcnt() && __builtin_cpu_supports("avx512f") != 0 &&
                               __builtin_cpu_supports("avx512vpopcntdq") != 0;
    return answer;
}
#endif

}  // namespace engram
