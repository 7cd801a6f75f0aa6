"""Which dates a question names, relative to when it is asked."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engram.retrieval.date_expressions import nearness, spans
from engram.times import DAY, to_micros

NOW = to_micros(datetime(2024, 3, 14, 15, 30, tzinfo=UTC))  # a Thursday
EARLIEST = to_micros(datetime.min.replace(tzinfo=UTC))
LATEST = to_micros(datetime.max.replace(tzinfo=UTC))

NAMED = {
    "What did I do three weeks ago?": "2024-02-19 2024-02-25",
    "3 days ago": "2024-03-11 2024-03-11",
    "a couple of days ago": "2024-03-12 2024-03-12",
    "a few weeks ago": "2024-02-12 2024-03-03",
    "about two years ago": "2021-09-14 2022-09-13",
    "a year ago today": "2022-09-14 2023-09-13",
    "yesterday": "2024-03-13 2024-03-13",
    "what is planned for today?": "2024-03-14 2024-03-14",
    "the day before yesterday": "2024-03-12 2024-03-12",
    "LAST NIGHT": "2024-03-13 2024-03-14",
    "last Thursday": "2024-03-07 2024-03-07",
    "this past Friday": "2024-03-08 2024-03-08",
    "this Monday": "2024-03-11 2024-03-11",
    "What was decided on Thursday?": "2024-03-14 2024-03-14",
    "last weekend": "2024-03-09 2024-03-10",
    "last  \n week": "2024-03-04 2024-03-10",
    "this week": "2024-03-11 2024-03-17",
    "last month": "2024-02-01 2024-02-29",
    "this month": "2024-03-01 2024-03-31",
    "last year": "2023-01-01 2023-12-31",
    "in the last week": "2024-03-07 2024-03-14",
    "the past 3 days": "2024-03-11 2024-03-14",
    "over the last couple of weeks": "2024-02-29 2024-03-14",
    "since last month": "2024-02-01 2024-03-14",
    "since May": "2023-05-01 2024-03-14",
    "since 8 May": "2023-05-08 2024-03-14",
    "in May": "2023-05-01 2023-05-31",
    "in march": "2024-03-01 2024-03-31",
    "last March": "2023-03-01 2023-03-31",
    "at the end of June": "2023-06-01 2023-06-30",
    "in mid-April": "2023-04-01 2023-04-30",
    "the November trip": "2023-11-01 2023-11-30",
    "in January and March": "2024-01-01 2024-01-31, 2024-03-01 2024-03-31",
    "in May last year": "2023-05-01 2023-05-31",
    "the week of May 2021": "2021-05-01 2021-05-31",
    "Sept. 2022": "2022-09-01 2022-09-30",
    "on 8 May": "2023-05-08 2023-05-08",
    "on 8 May (2022)": "2022-05-08 2022-05-08",
    "May 8th": "2023-05-08 2023-05-08",
    "What happened May 8?": "2023-05-08 2023-05-08",
    "on Monday, May 8": "2023-05-08 2023-05-08",
    "the 8th of March, 1969": "1969-03-08 1969-03-08",
    "December 1,2023": "2023-12-01 2023-12-01",
    "March 14": "2024-03-14 2024-03-14",
    "8 May": "2023-05-08 2023-05-08",
    "8th May": "2023-05-08 2023-05-08",
    "the 8th of May": "2023-05-08 2023-05-08",
    "What was said 8 May, and why": "2023-05-08 2023-05-08",
    "8 Mar.": "2024-03-08 2024-03-08",
    "May 8 (a Monday)": "2023-05-08 2023-05-08",
    "May 8: what happened": "2023-05-08 2023-05-08",
    "Who came the 8th May with Ann": "2023-05-08 2023-05-08",
    "May 8th people came": "2023-05-08 2023-05-08",
    "8 June we met": "2023-06-08 2023-06-08",
    "on March 14": "2024-03-14 2024-03-14",
    "on March 15": "2023-03-15 2023-03-15",
    "29 February": "2024-02-29 2024-02-29",
    "13/5/2023": "2023-05-13 2023-05-13",
    "5/13/2023": "2023-05-13 2023-05-13",
    "5.5.2023": "2023-05-05 2023-05-05",
    "2023-05-08T10:00": "2023-05-08 2023-05-08",
    "0001-01-01": "0001-01-01 0001-01-01",
    "in 2022, what": "2022-01-01 2022-12-31",
    "back in 1950": "1950-01-01 1950-12-31",
    "since 2022": "2022-01-01 2024-03-14",
    "the summer of 2022": "2022-06-01 2022-08-31",
    "last winter": "2023-12-01 2024-02-29",
    "on Christmas": "2023-12-25 2023-12-25",
    "last Halloween": "2023-10-31 2023-10-31",
    "on New Year’s Eve": "2023-12-31 2023-12-31",
    "Valentine's Day 2022": "2022-02-14 2022-02-14",
    "between August 11 and August 15 2023": "2023-08-11 2023-08-15",
    "between May 1 and May 5 (2022)": "2022-05-01 2022-05-05",
    "from May 1 to May 5": "2023-05-01 2023-05-05",
    "from 1 May until the 5th of June we": "2023-05-01 2023-06-05",
    "from December 20 to January 5": "2023-12-20 2024-01-05",
    "between May 1, 2022 and March 5, 2023": "2022-05-01 2022-05-01, 2023-03-05 2023-03-05",
    "thirteen weeks ago": "2023-12-11 2023-12-17",
    "the last twenty days": "2024-02-23 2024-03-14",
    "the party two days ago": "2024-03-12 2024-03-12",
    "yesterday, or was it yesterday": "2024-03-13 2024-03-13",
    "昨日 yesterday 🙂": "2024-03-13 2024-03-13",
}

NOT_NAMED = [
    *("", " ", "\0", "🙂", "五月に", "what did I say?"),
    *("may I march for rights", "this may be wrong", "this march", "may 5 people come"),
    *(
        "the 8th may be late",
        "The 8th may be",
        "the 8th march was long",
        "the 5 may come",
        "may 5 to 10 people come",
        "may 5-10 people come",
        "may 5% fail",
        "may 8,000 fail",
        "March 8:30",
        "the sun and sat",
        "mar 5 things",
        "dec",
        "June said so",
        "in Marc",
        "Marc 5",
    ),
    *("how many weeks ago did I go", "how long ago", "half a year ago", "2.5 years ago"),
    *(
        "twenty-five years ago",
        "twenty five years ago",
        "the last thirty one days",
        "3 years old",
        "5-day trip",
        "next week",
        "in two weeks",
    ),
    *("my last year there", "Anna's last week", "last week before the exam", "last time"),
    *("on Mondays", "the Monday before", "this weekend", "Christmas gifts", "halloween"),
    *("8/5/2023", "2023-02-30", "31 June", "99/99/2023", "31.13.2023", "in 2023.5", "0000-01-01"),
    *("999999999999 years ago", "9999 years ago", "last 9999 years", "9999-12-31"),
]


def days(text: str) -> list[tuple[int, int]]:
    """Return the spans of "first last, first last", both days included."""
    found = []
    for pair in text.split(", "):
        first, last = (datetime.fromisoformat(day) for day in pair.split())
        found.append((to_micros(first), to_micros(last) + DAY))
    return found


@pytest.mark.parametrize("query", NAMED)
def test_names(query):
    expected = NAMED[query]
    assert spans(query, NOW) == (days(expected) if expected else [])


@pytest.mark.parametrize("query", NOT_NAMED)
def test_names_no_date(query):
    assert spans(query, NOW) == []


def test_expression_stands_anywhere():
    """Around words that mean nothing, each expression means what it does alone."""
    for query in filter(NAMED.get, NAMED):
        assert spans(f'so "{query}" or so', NOW) == spans(query, NOW)


def test_last_weekend_of_a_weekend_is_the_one_before():
    sunday = to_micros(datetime(2024, 3, 17, 9, tzinfo=UTC))
    assert spans("last weekend", sunday) == days("2024-03-09 2024-03-10")


def test_a_list_of_dates_is_read_up_to_sixteen():
    text = " ".join(f"{day} January {year}" for year in (2020, 2021) for day in range(1, 32))
    assert spans(text, NOW) == days(
        ", ".join([f"2020-01-{d:02} 2020-01-{d:02}" for d in range(1, 17)])
    )


words = st.sampled_from(
    re.findall(r"\w+|\W", " ".join(NAMED) + " ".join(NOT_NAMED) + " of before 31 0 9999 99999999")
)
texts = st.lists(words | st.sampled_from([" "]) | st.text(max_size=4), max_size=14).map("".join)


@settings(deadline=None)
@given(texts, st.integers(EARLIEST, LATEST))
def test_spans_are_ordered_and_within_time(query, now):
    for first, end in spans(query, now):
        assert EARLIEST <= first < end <= LATEST
        assert first % DAY == end % DAY == 0


@settings(deadline=None)
@given(st.dates(date(1900, 1, 1), date(2099, 12, 31)), st.integers(EARLIEST, LATEST))
def test_a_whole_date_is_the_same_at_any_time(day, now):
    start = to_micros(datetime(day.year, day.month, day.day, tzinfo=UTC))
    month = f"{day:%B}"
    for text in (
        day.isoformat(),
        f"on {day.day} {month} {day.year}",
        f"{month} {day.day}, {day.year}",
    ):
        assert spans(text, now) == [(start, start + DAY)]


@settings(deadline=None)
@given(st.integers(0, 9999), st.dates(date(30, 1, 1), date(9999, 12, 30)), st.integers(0, DAY - 1))
def test_days_ago(n, today, time_of_day):
    midnight = to_micros(datetime(today.year, today.month, today.day, tzinfo=UTC))
    expected = midnight - n * DAY
    assert spans(f"{n} days ago", midnight + time_of_day) == [(expected, expected + DAY)]


@pytest.mark.parametrize(
    "unit",
    [
        *("last ", "the ", "on ", "a couple of ", "since ", "may ", "1 ", "1/", "2023-", "9" * 50),
        *("in january and ", "new year's ", "half ", " ", "\0", "🙂", "日", "the last 12 month"),
    ],
)
def test_long_texts_name_nothing_new(unit):
    """Each character is read a bounded number of times: this would not end otherwise."""
    text = unit * (9_900 // len(unit))
    assert spans(f"{text} . last week", NOW) == spans(f"{unit} . last week", NOW)


def test_ten_thousand_characters_are_read():
    before = "may " * 2_000
    assert spans(before + "on 8 May 2022" + " the" * 250_000, NOW) == days("2022-05-08 2022-05-08")
    assert spans("may " * 250_000 + "on 8 May 2022", NOW) == []


def test_nearness_is_one_within_and_falls_with_distance():
    week, day = spans("last week", NOW) + spans("on 8 May 2020", NOW)
    first, end = week
    half = (end - first) // 2
    times = np.array([first, end - 1, end + half, first - half, first - 2 * half, day[0] - DAY])
    expected = [1, 1, np.exp(-1), np.exp(-1), np.exp(-2), np.exp(-1)]
    np.testing.assert_allclose(nearness(times, [week, day]), expected, rtol=1e-6)
    assert nearness(times, []).tolist() == [0.0] * 6
    assert nearness(np.array([], np.int64), [week]).tolist() == []


@given(st.lists(st.integers(EARLIEST, LATEST)), st.integers(EARLIEST, LATEST - DAY))
def test_nearness_is_within_its_range(times, first):
    near = nearness(np.array(times, np.int64), [(first, first + DAY)])
    assert near.dtype == np.float64
    for time, value in zip(times, near, strict=True):
        assert value == 1 if first <= time <= first + DAY else 0 <= value <= 1
