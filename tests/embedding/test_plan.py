from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from engram.embedding.embedder import _windows
from engram.embedding.plan import batches, chunk_spans

LENGTHS = st.lists(st.integers(0, 600), max_size=60)


@given(length=st.integers(0, 5000), window=st.integers(1, 510))
def test_chunks_cover_every_token_and_overlap(length: int, window: int) -> None:
    spans = chunk_spans(length, window)
    assert spans[0][0] == 0
    assert spans[-1][1] == length
    assert all(0 <= stop - start <= window for start, stop in spans)
    overlap = min(32, window // 8)
    for (_, stop), (start, _) in pairwise(spans):
        assert stop - start >= overlap


@given(length=st.integers(0, 5000), window=st.integers(1, 510))
def test_chunks_of_a_text_have_one_size_and_are_as_few_as_can_be(length: int, window: int) -> None:
    spans = chunk_spans(length, window)
    assert len({stop - start for start, stop in spans}) == 1
    assert len(set(spans)) == len(spans)
    reach = window - min(32, window // 8)
    assert len(spans) == 1 or (len(spans) - 1) * reach + window - reach < length


@given(lengths=LENGTHS, max_rows=st.integers(1, 9), max_tokens=st.integers(1, 2000))
def test_batches_hold_every_row_once_within_their_bounds(
    lengths: list[int], max_rows: int, max_tokens: int
) -> None:
    planned = batches(lengths, max_rows=max_rows, max_tokens=max_tokens)
    assert sorted(row for batch in planned for row in batch) == list(range(len(lengths)))
    for batch in planned:
        padded = len(batch) * max(lengths[row] for row in batch)
        assert len(batch) == 1 or (len(batch) <= max_rows and padded <= max_tokens)


@given(lengths=LENGTHS)
def test_batches_go_from_long_to_short_and_equal_rows_keep_their_order(lengths: list[int]) -> None:
    order = [row for batch in batches(lengths) for row in batch]
    assert order == sorted(order, key=lambda row: (-lengths[row], row))


@given(lengths=st.lists(st.integers(0, 700_000), max_size=30))
def test_windows_keep_the_order_and_bound_what_is_held_at_once(lengths: list[int]) -> None:
    texts = [chr(97 + at % 26) * length for at, length in enumerate(lengths)]
    windows = list(_windows(texts))
    assert [text for window in windows for text in window] == texts
    for window in windows:
        assert len(window) == 1 or sum(map(len, window)) <= 1_000_000
    assert max(map(len, _windows(["a"] * 5000))) == 2048
