// Checksums of the pages of a file that is mapped, and reading rows of one that is not.
//
// Ownership: every pointer is borrowed from a NumPy array that the caller keeps alive for the whole
// call. `checked` may be shared by threads: they write the same 1 to the same byte, and one that
// reads an old 0 checks a page once more. File descriptors belong to the caller.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace engram {

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t page_lanes = 4;

// As FNV-1a, over words and in four lanes that do not wait for each other. For a fixed word a step
// maps states one to one (exclusive or, times an odd number, rotation), and for a fixed state it
// maps words one to one. So a change within one word always changes its lane's state, which the
// equal words after it keep different, and the last fold is one to one in each lane. The rotation
// lets high bits reach low ones; without it two changes of highest bits could cancel.
constexpr std::uint64_t page_factor = 0x9e3779b97f4a7c15u;
constexpr std::uint64_t page_seeds[page_lanes] = {0x243f6a8885a308d3u, 0x13198a2e03707344u,
                                                  0xa4093822299f31d0u, 0x082efa98ec4e6c89u};

inline std::uint64_t page_step(std::uint64_t state, std::uint64_t word) {
    const std::uint64_t mixed = (state ^ word) * page_factor;
    return mixed << 29 | mixed >> 35;
}

inline std::uint64_t page_sum(const std::uint8_t* page) {
    std::uint64_t lanes[page_lanes];
    std::memcpy(lanes, page_seeds, sizeof lanes);
    for (std::size_t i = 0; i < page_bytes; i += sizeof lanes) {
        std::uint64_t words[page_lanes];
        std::memcpy(words, page + i, sizeof words);
        for (std::size_t l = 0; l < page_lanes; ++l) lanes[l] = page_step(lanes[l], words[l]);
    }
    std::uint64_t sum = lanes[0];
    for (std::size_t l = 1; l < page_lanes; ++l) sum = page_step(sum, lanes[l]);
    return sum;
}

inline void page_sums(const std::uint8_t* data, std::size_t pages, std::uint64_t* out) {
    for (std::size_t p = 0; p < pages; ++p) out[p] = page_sum(data + p * page_bytes);
}

struct PagedFile {
    const std::uint8_t* data;
    const std::uint64_t* sums;
    std::uint8_t* checked;

    // Pages first to last, the last one excluded; false at the first that is wrong.
    bool check(std::size_t first, std::size_t last) const {
        for (std::size_t p = first; p < last; ++p) {
            if (checked[p] != 0) continue;
            if (page_sum(data + p * page_bytes) != sums[p]) return false;
            checked[p] = 1;
        }
        return true;
    }
};

struct RowPlaces {
    std::uint64_t offset;
    std::uint64_t row_bytes;
    const std::uint32_t* rows;
    std::size_t count;

    std::uint64_t begin(std::size_t position) const { return offset + rows[position] * row_bytes; }
};

inline bool rows_within(const RowPlaces& in, std::uint64_t bytes) {
    for (std::size_t j = 0; j < in.count; ++j)
        if (in.begin(j) + in.row_bytes > bytes) return false;
    return true;
}

// Call after rows_within() said yes.
inline bool check_rows(const PagedFile& file, const RowPlaces& in) {
    for (std::size_t j = 0; j < in.count; ++j) {
        const std::uint64_t begin = in.begin(j);
        const std::uint64_t end = begin + in.row_bytes;
        if (!file.check(begin / page_bytes, (end - 1) / page_bytes + 1)) return false;
    }
    return true;
}

enum class ReadFault { none, ended, failed };  // failed: errno says why

inline ReadFault read_whole(int file, std::uint8_t* out, std::size_t bytes, std::uint64_t begin) {
    while (bytes > 0) {
        const ssize_t got = pread(file, out, bytes, static_cast<off_t>(begin));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return ReadFault::failed;
        if (got == 0) return ReadFault::ended;
        out += got;
        begin += static_cast<std::uint64_t>(got);
        bytes -= static_cast<std::size_t>(got);
    }
    return ReadFault::none;
}

// Rows that follow each other in the list and in the file are one read.
inline ReadFault read_rows(int file, const RowPlaces& in, std::uint8_t* out) {
    for (std::size_t j = 0; j < in.count;) {
        std::size_t run = 1;
        while (j + run < in.count && in.begin(j + run) == in.begin(j) + run * in.row_bytes) ++run;
        const ReadFault fault = read_whole(file, out + j * in.row_bytes, run * in.row_bytes,
                                           in.begin(j));
        if (fault != ReadFault::none) return fault;
        j += run;
    }
    return ReadFault::none;
}

}  // namespace engram
