// Texts to an inverted index: every distinct term in the order of its bytes, with its postings.
//
// Ownership: the texts and the arrays of the parts are borrowed from Python objects that the caller
// keeps alive and leaves unchanged for the whole call; the vectors of the result are its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

namespace engram {

// FTS5 keeps so many bytes of a term.
constexpr std::size_t longest_term = 32768;

// A frequency that does not fit its byte: the byte says so, the number stands aside.
constexpr std::uint8_t frequency_aside = 255;

struct Text {
    const char* first;
    std::size_t size;
};

struct Body {
    Text text;
    bool split;  // into terms already, each with a zero behind it
};

// By bytes, which for UTF-8 is by code point.
inline bool less(const Text& a, const Text& b) {
    const std::size_t common = std::min(a.size, b.size);
    const int order = common == 0 ? 0 : std::memcmp(a.first, b.first, common);
    return order != 0 ? order < 0 : a.size < b.size;
}

struct Words {
    std::vector<std::uint32_t> lengths;
    std::vector<char> term_bytes;
    std::vector<std::int64_t> term_ends;
    std::vector<std::int64_t> starts{0};
    std::vector<std::uint32_t> rows;
    std::vector<std::uint8_t> frequencies;
    std::vector<std::int64_t> large;
    std::vector<std::uint32_t> large_frequencies;

    void add_term(const char* bytes, std::size_t size) {
        term_bytes.insert(term_bytes.end(), bytes, bytes + size);
        term_ends.push_back(static_cast<std::int64_t>(term_bytes.size()));
    }
};

// What FTS5's unicode61 makes of an ASCII character: its lower case in a term, 0 between terms.
class Folding {
   public:
    Folding() {
        for (int c = '0'; c <= '9'; ++c) folded_[c] = static_cast<char>(c);
        for (int c = 'a'; c <= 'z'; ++c) folded_[c] = static_cast<char>(c);
        for (int c = 'A'; c <= 'Z'; ++c) folded_[c] = static_cast<char>(c - 'A' + 'a');
    }

    char operator[](char c) const { return folded_[static_cast<unsigned char>(c)]; }

   private:
    char folded_[256] = {};
};

// The distinct terms in the order of their first token. An open-addressing table of numbers; the
// top half of a term's hash lies beside its number, so most foreign terms are told apart unread.
class Vocabulary {
   public:
    std::uint32_t number_of(const char* bytes, std::size_t size) {
        if ((ends_.size() + 1) * 2 > slots_.size()) grow();
        const std::uint64_t hash = hash_of(bytes, size);
        const auto check = static_cast<std::uint32_t>(hash >> 32);
        std::size_t at = hash & (slots_.size() - 1);
        for (; slots_[at].number != none; at = (at + 1) & (slots_.size() - 1))
            if (slots_[at].check == check && equals(slots_[at].number, bytes, size))
                return slots_[at].number;
        if (ends_.size() == none) throw std::length_error("too many terms for one segment");
        slots_[at] = {check, static_cast<std::uint32_t>(ends_.size())};
        bytes_.insert(bytes_.end(), bytes, bytes + size);
        ends_.push_back(bytes_.size());
        return slots_[at].number;
    }

    std::size_t size() const { return ends_.size(); }

    Text term(std::size_t number) const {
        const std::size_t first = number == 0 ? 0 : ends_[number - 1];
        return {bytes_.data() + first, ends_[number] - first};
    }

    // The numbers of all terms, by their bytes.
    std::vector<std::uint32_t> sorted() const {
        std::vector<std::pair<std::uint64_t, std::uint32_t>> keyed(size());
        for (std::uint32_t n = 0; n < keyed.size(); ++n) keyed[n] = {first_bytes(term(n)), n};
        std::sort(keyed.begin(), keyed.end(), [this](const auto& a, const auto& b) {
            return a.first != b.first ? a.first < b.first : less(term(a.second), term(b.second));
        });
        std::vector<std::uint32_t> numbers(size());
        for (std::size_t i = 0; i < keyed.size(); ++i) numbers[i] = keyed[i].second;
        return numbers;
    }

   private:
    struct Slot {
        std::uint32_t check;
        std::uint32_t number;
    };

    static constexpr std::uint32_t none = 0xFFFFFFFF;

    // Terms shorter than eight bytes are filled up with zeros, which no term contains.
    static std::uint64_t first_bytes(const Text& term) {
        std::uint64_t key = 0;
        for (std::size_t i = 0; i < 8; ++i)
            key = key << 8 | (i < term.size ? static_cast<unsigned char>(term.first[i]) : 0);
        return key;
    }

    static std::uint64_t mixed(std::uint64_t value) {
        value *= 0x9E3779B97F4A7C15;
        return value ^ value >> 29;
    }

    static std::uint64_t hash_of(const char* bytes, std::size_t size) {
        std::uint64_t hash = size;
        std::uint64_t word = 0;
        for (; size > 8; bytes += 8, size -= 8) {
            std::memcpy(&word, bytes, 8);
            hash = mixed(hash ^ word);
        }
        word = 0;
        std::memcpy(&word, bytes, size);
        return mixed(mixed(hash ^ word));
    }

    bool equals(std::uint32_t number, const char* bytes, std::size_t size) const {
        const Text known = term(number);
        return known.size == size && (size == 0 || std::memcmp(known.first, bytes, size) == 0);
    }

    void grow() {
        slots_.assign(std::max<std::size_t>(1024, slots_.size() * 2), Slot{0, none});
        for (std::uint32_t n = 0; n < ends_.size(); ++n) {
            const Text known = term(n);
            const std::uint64_t hash = hash_of(known.first, known.size);
            std::size_t at = hash & (slots_.size() - 1);
            while (slots_[at].number != none) at = (at + 1) & (slots_.size() - 1);
            slots_[at] = {static_cast<std::uint32_t>(hash >> 32), n};
        }
    }

    std::vector<char> bytes_;
    std::vector<std::size_t> ends_;
    std::vector<Slot> slots_;
};

// The tokens of all texts, row by row. Those of a text that is not split are surface words until
// `stem` says which term each is: a word is stemmed once, however often it stands there.
class Tokens {
   public:
    void read(const std::vector<Body>& bodies) {
        const Folding folding;
        std::vector<char> word(longest_term);
        lengths.reserve(bodies.size());
        for (const Body& body : bodies) {
            const std::size_t before = numbers.size();
            if (body.split)
                add_terms(body.text);
            else
                add_text(body.text, folding, word.data());
            lengths.push_back(static_cast<std::uint32_t>(numbers.size() - before));
            split_.push_back(body.split);
        }
    }

    std::size_t word_count() const { return words_.size(); }
    Text word(std::size_t number) const { return words_.term(number); }

    // Takes the terms of all surface words, in the order of their numbers.
    void stem(const std::vector<Text>& stems) {
        std::vector<std::uint32_t> terms;
        terms.reserve(stems.size());
        for (const Text& stem : stems)
            terms.push_back(vocabulary.number_of(stem.first, std::min(stem.size, longest_term)));
        std::uint32_t* token = numbers.data();
        for (std::size_t row = 0; row < lengths.size(); ++row) {
            std::uint32_t* const end = token + lengths[row];
            for (; token != end; ++token)
                if (!split_[row]) *token = terms[*token];
        }
    }

    Vocabulary vocabulary;
    std::vector<std::uint32_t> numbers;
    std::vector<std::uint32_t> lengths;

   private:
    void add_text(const Text& text, const Folding& folding, char* word) {
        const char* const end = text.first + text.size;
        for (const char* c = text.first; c != end;) {
            std::size_t size = 0;
            char folded = 0;
            for (; c != end && (folded = folding[*c]) != 0; ++c)
                if (size < longest_term) word[size++] = folded;
            if (size > 0)
                numbers.push_back(words_.number_of(word, size));
            else
                ++c;
        }
    }

    void add_terms(const Text& text) {
        const char* const end = text.first + text.size;
        for (const char* first = text.first; first != end;) {
            const char* zero = std::find(first, end, '\0');
            const auto size = static_cast<std::size_t>(zero - first);
            numbers.push_back(vocabulary.number_of(first, std::min(size, longest_term)));
            first = zero + 1;
        }
    }

    Vocabulary words_;
    std::vector<bool> split_;
};

// Where each term's postings begin, by number; written to `words` in the order of the terms.
inline std::vector<std::size_t> postings_begin(const Tokens& tokens, Words& words) {
    constexpr std::uint32_t nowhere = 0xFFFFFFFF;
    std::vector<std::size_t> counts(tokens.vocabulary.size());
    std::vector<std::uint32_t> last(tokens.vocabulary.size(), nowhere);
    const std::uint32_t* token = tokens.numbers.data();
    for (std::uint32_t row = 0; row < words.lengths.size(); ++row)
        for (std::uint32_t i = 0; i < words.lengths[row]; ++i, ++token)
            if (last[*token] != row) {
                last[*token] = row;
                ++counts[*token];
            }
    std::size_t total = 0;
    for (const std::uint32_t number : tokens.vocabulary.sorted()) {
        const Text term = tokens.vocabulary.term(number);
        words.add_term(term.first, term.size);
        const std::size_t first = total;
        total += counts[number];
        counts[number] = first;
        words.starts.push_back(static_cast<std::int64_t>(total));
    }
    words.rows.resize(total);
    words.frequencies.resize(total);
    return counts;
}

// Numbers that do not fit their byte, by posting.
using Aside = std::map<std::size_t, std::uint32_t>;

inline void count_again(Words& words, std::size_t posting, Aside& aside) {
    std::uint8_t& frequency = words.frequencies[posting];
    if (frequency == frequency_aside)
        ++aside[posting];
    else if (++frequency == frequency_aside)
        aside[posting] = frequency_aside;
}

inline Words invert(Tokens& tokens) {
    Words words;
    words.lengths.swap(tokens.lengths);
    std::vector<std::size_t> next = postings_begin(tokens, words);
    const std::vector<std::size_t> begin = next;
    Aside aside;
    const std::uint32_t* token = tokens.numbers.data();
    for (std::uint32_t row = 0; row < words.lengths.size(); ++row)
        for (std::uint32_t i = 0; i < words.lengths[row]; ++i, ++token) {
            std::size_t& at = next[*token];
            if (at > begin[*token] && words.rows[at - 1] == row) {
                count_again(words, at - 1, aside);
                continue;
            }
            words.rows[at] = row;
            words.frequencies[at++] = 1;
        }
    for (const auto& [posting, frequency] : aside) {
        words.large.push_back(static_cast<std::int64_t>(posting));
        words.large_frequencies.push_back(frequency);
    }
    return words;
}

// The arrays of one index that is merged with others, and what was read of them.
struct WordsView {
    const std::uint32_t* lengths;
    std::size_t row_count;
    const char* term_bytes;
    std::size_t byte_count;
    const std::int64_t* term_ends;
    std::size_t term_count;
    const std::int64_t* starts;  // term_count + 1
    const std::uint32_t* rows;
    const std::uint8_t* frequencies;
    std::size_t posting_count;
    const std::int64_t* large;
    const std::uint32_t* large_frequencies;
    std::size_t large_count;
    const std::uint8_t* live;  // null: every row

    Text term(std::size_t number) const {
        const std::int64_t first = number == 0 ? 0 : term_ends[number - 1];
        const std::int64_t end = term_ends[number];
        if (first < 0 || end < first || static_cast<std::size_t>(end) > byte_count)
            throw std::invalid_argument("term_ends must ascend within term_bytes");
        return {term_bytes + first, static_cast<std::size_t>(end - first)};
    }

    std::pair<std::size_t, std::size_t> postings(std::size_t number) const {
        const std::int64_t first = starts[number];
        const std::int64_t end = starts[number + 1];
        if (first < 0 || end < first || static_cast<std::size_t>(end) > posting_count)
            throw std::invalid_argument("starts must ascend within rows");
        return {static_cast<std::size_t>(first), static_cast<std::size_t>(end)};
    }
};

// One part of a merge: it hands over its terms in their order, each with its living postings.
class Source {
   public:
    Source(const WordsView& view, Words& merged) : view_(view) {
        numbers_.resize(view.row_count, gone);
        for (std::size_t row = 0; row < view.row_count; ++row) {
            if (view.live != nullptr && view.live[row] == 0) continue;
            if (merged.lengths.size() == gone)
                throw std::length_error("too many rows for one segment");
            numbers_[row] = static_cast<std::uint32_t>(merged.lengths.size());
            merged.lengths.push_back(view.lengths[row]);
        }
        read_term();
    }

    bool done() const { return next_ == view_.term_count; }
    const Text& term() const { return term_; }

    void move_postings(Words& merged) {
        const auto [first, end] = view_.postings(next_);
        for (std::size_t p = first; p < end; ++p) {
            const std::uint32_t row = view_.rows[p];
            if (row >= numbers_.size())
                throw std::invalid_argument("rows must be in [0, number of lengths)");
            if (numbers_[row] == gone) continue;
            if (view_.frequencies[p] == frequency_aside) move_large(p, merged);
            merged.rows.push_back(numbers_[row]);
            merged.frequencies.push_back(view_.frequencies[p]);
        }
        ++next_;
        read_term();
    }

   private:
    static constexpr std::uint32_t gone = 0xFFFFFFFF;

    void read_term() {
        if (!done()) term_ = view_.term(next_);
    }

    // Postings come in their order, so the numbers aside do as well.
    void move_large(std::size_t posting, Words& merged) {
        const auto place = static_cast<std::int64_t>(posting);
        while (large_ < view_.large_count && view_.large[large_] < place) ++large_;
        if (large_ == view_.large_count || view_.large[large_] != place)
            throw std::invalid_argument("large must name every posting whose frequency is 255");
        merged.large.push_back(static_cast<std::int64_t>(merged.rows.size()));
        merged.large_frequencies.push_back(view_.large_frequencies[large_]);
    }

    WordsView view_;
    std::vector<std::uint32_t> numbers_;
    Text term_{nullptr, 0};
    std::size_t next_ = 0;
    std::size_t large_ = 0;
};

inline Words merge(const std::vector<WordsView>& views) {
    Words merged;
    std::size_t rows = 0;
    std::size_t postings = 0;
    for (const WordsView& view : views) {
        rows += view.row_count;
        postings += view.posting_count;
    }
    merged.lengths.reserve(rows);
    merged.rows.reserve(postings);
    merged.frequencies.reserve(postings);
    std::vector<Source> sources;
    sources.reserve(views.size());
    for (const WordsView& view : views) sources.emplace_back(view, merged);

    for (;;) {
        const Source* least = nullptr;
        for (const Source& source : sources)
            if (!source.done() && (least == nullptr || less(source.term(), least->term())))
                least = &source;
        if (least == nullptr) return merged;
        const Text term = least->term();
        for (Source& source : sources)
            if (!source.done() && !less(term, source.term())) source.move_postings(merged);
        if (static_cast<std::int64_t>(merged.rows.size()) == merged.starts.back()) continue;
        merged.add_term(term.first, term.size);
        merged.starts.push_back(static_cast<std::int64_t>(merged.rows.size()));
    }
}

}  // namespace engram
