"""What a query says of time: "three weeks ago", "last May", "on 8 May 2023", "in 2022".

English only, and only what means a day, a week, a month, a season or a year with little doubt:
"may I", "march for", "how many weeks ago", "my last year there" say nothing. A date without a year
is the latest such that is not after now. Days are days in UTC, weeks begin on Monday, seasons are
those of the northern half of the earth.

All arithmetic is in whole days, counted as `date.toordinal` does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import date
from functools import cache, partial
from typing import TYPE_CHECKING, Final

import numpy as np

from engram.times import DAY, MONTHS, from_micros

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_SPANS: Final = 16
_LONGEST: Final = 10_000
_EPOCH: Final = date(1970, 1, 1).toordinal()
_LAST: Final = date.max.toordinal()

_Days = tuple[int, int]  # the first one, and the one after the last
_Groups = Sequence[str]  # what a rule's groups hold, "" where nothing
_Reader = Callable[[_Groups, date], list[_Days]]  # ValueError: it is no date after all

_MONTH_NAMES = tuple(map(str.lower, MONTHS))
_MONTHS = {name[:n]: i for i, name in enumerate(_MONTH_NAMES, 1) for n in (9, 3)} | {"sept": 9}
# Months that are no person's name, and months that are verbs.
_NO_NAMES = tuple(name for name in _MONTH_NAMES if len(name) > 6 or name == "july")
_VERBS = ("may", "march", "mar")
# What follows where they are verbs, or the name of a walk.
_NO_DATE_BEFORE = (
    *("be", "have", "has", "had", "was", "were", "is", "not", "never", "also", "well", "still"),
    *("do", "go", "get", "come", "take", "make", "mean", "need", "bring", "see", "on", "past"),
)
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_HOLIDAYS = {
    "christmas eve": (12, 24),
    "christmas": (12, 25),
    "new years eve": (12, 31),
    "new years": (1, 1),
    "valentines": (2, 14),
    "halloween": (10, 31),
}
_NUMBERS = (
    *("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
    *("nineteen", "twenty"),
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_COUNTS = {word: (n, n) for n, word in enumerate(_NUMBERS, 1)} | {
    **dict.fromkeys(("a", "an"), (1, 1)),
    **dict.fromkeys(("couple", "couple of", "a couple", "a couple of"), (2, 2)),
    **dict.fromkeys(("few", "a few"), (2, 4)),
    "several": (3, 6),
}
_LENGTHS = {"day": 1.0, "week": 7.0, "month": 30.44, "year": 365.25}


def spans(query: str, now: int) -> list[tuple[int, int]]:
    """Return the stretches of time that a query names.

    Args:
        query: The query's text; what follows 10,000 characters or 16 spans is not read.
        now: What it is relative to, in microseconds.

    Returns:
        Begin and end of each, in microseconds, in the order of the text; empty where it names none
        within the years 1 to 9999.
    """
    text = query[:_LONGEST].lower()
    if not _may_name_a_date(text):
        return []
    text = " ".join(text.split()).replace("\u2019", "'")
    today = from_micros(now).date()
    pattern, readers = _grammar()
    found: dict[_Days, None] = {}
    for match in pattern.finditer(text):
        rule = match.lastindex or 0
        read, size = readers[rule]
        since = text.startswith("since ", max(match.start() - 6, 0)) or match[0][:5] == "since"
        with suppress(ValueError):  # the 31st of June, the year 0
            for first, end in read(match.groups("")[rule : rule + size], today):
                last = max(end, today.toordinal() + 1) if since else end
                if 0 < first < last <= _LAST:
                    found[first, last] = None
        if len(found) >= _MOST_SPANS:
            break
    return [((first - _EPOCH) * DAY, (end - _EPOCH) * DAY) for first, end in found]


def nearness(times: NDArray[np.int64], spans: Sequence[tuple[int, int]]) -> NDArray[np.float64]:
    """Return how near times are to the nearest of some spans.

    Within a span it is 1; outside it falls to 1/e with each half of the span's length, or with each
    day where that is longer: a day is told of the day after, and begins elsewhere at another hour.

    Args:
        times: Times in microseconds.
        spans: Begin and end of each, in microseconds.

    Returns:
        A number from 0 to 1 for each time, 0 where there are no spans.
    """
    nearest = np.zeros(len(times))
    for first, end in spans:
        away = np.maximum(np.maximum(first - times, times - end), 0)
        np.maximum(nearest, np.exp(-away / max((end - first) / 2, DAY)), out=nearest)
    return nearest


def _months(year: int, month: int, number: int = 1) -> _Days:
    """Return the days of a number of months, of which the first is given."""
    end = 12 * year + month - 1 + number
    return date(year, month, 1).toordinal(), date(end // 12, end % 12 + 1, 1).toordinal()


def _one_day(year: int, month: int, day: int) -> _Days:
    first = date(year, month, day).toordinal()
    return first, first + 1


def _dated(
    days_in: Callable[[int], _Days], year: str, today: date, *, over: bool = False
) -> list[_Days]:
    """Return what `days_in` gives for a year.

    Args:
        days_in: Returns the days that are meant, of a year.
        year: "2023", "this year" or "last year"; "": the latest one whose days have begun.
        today: The day of now.
        over: Without a year: the days must be over.

    Raises:
        ValueError: There is no such day.
    """
    if year:
        return [days_in(int(year) if year.isdigit() else today.year - (year == "last year"))]
    # A 29 February may lie eight years back.
    for candidate in range(today.year, today.year - 9, -1):
        with suppress(ValueError):
            first, end = days_in(candidate)
            if (end if over else first) <= today.toordinal():
                return [(first, end)]
    raise ValueError


def _back(count: str, unit: str, today: date) -> _Days:
    """Return the days that lie a number of units back, the most and the least it can mean."""
    least, most = _COUNTS[count] if count in _COUNTS else (int(count), int(count))
    length = _LENGTHS[unit]
    return today.toordinal() - round(most * length), today.toordinal() - round(least * length)


def _ago(groups: _Groups, today: date) -> list[_Days]:
    count, unit = groups
    farthest, nearest = _back(count, unit, today)
    half = int(_LENGTHS[unit] / 2)
    return [(farthest - half, nearest + half + 1)]


def _until_now(groups: _Groups, today: date) -> list[_Days]:
    count, unit, unit_alone = groups
    farthest, _ = _back(count or "a", unit or unit_alone, today)
    return [(farthest, today.toordinal() + 1)]


def _near_day(groups: _Groups, today: date) -> list[_Days]:
    (name,) = groups
    first = today.toordinal() - {"today": 0, "yesterday": 1, "last night": 1}.get(name, 2)
    # Whose night: it may be of two days in UTC.
    return [(first, first + (2 if name == "last night" else 1))]


def _period(groups: _Groups, today: date) -> list[_Days]:
    which, unit = groups
    back = int(which == "last")
    if unit == "year":
        return [_months(today.year - back, 1, 12)]
    if unit == "month":
        month = 12 * today.year + today.month - 1 - back
        return [_months(month // 12, month % 12 + 1)]
    monday = today.toordinal() - today.weekday()
    if unit == "weekend":
        return [(monday - 2, monday)]
    return [(monday - 7 * back, monday - 7 * back + 7)]


def _weekday(groups: _Groups, today: date) -> list[_Days]:
    which, name = groups
    back = today.weekday() - _WEEKDAYS.index(name)
    if which != "this":
        back %= 7
    if which in ("last", "past"):
        back = back or 7
    return [(today.toordinal() - back, today.toordinal() - back + 1)]


def _day_and_month(groups: _Groups, today: date) -> list[_Days]:
    lead, day, ordinal, of, month, year, then = groups
    # "the 5 may come", "the 8th may be"; but "the 8th May in Rome", "8 May."
    is_date = lead or of or year or not then or (ordinal and then.strip() not in _NO_DATE_BEFORE)
    if month in _VERBS and not is_date:
        raise ValueError
    return _dated(lambda y: _one_day(y, _MONTHS[month], int(day)), year, today)


def _month_and_day(groups: _Groups, today: date) -> list[_Days]:
    lead, month, day, ordinal, year, then = groups
    # "may 5 people"; but "May 5th people"
    if month in _VERBS and not (lead or ordinal or year or not then):
        raise ValueError
    return _dated(lambda y: _one_day(y, _MONTHS[month], int(day)), year, today)


def _days_to_days(groups: _Groups, today: date) -> list[_Days]:
    day, month, last_day, last_month, year = groups
    last = partial(_one_day, month=_MONTHS[last_month], day=int(last_day))
    ((_, end),) = _dated(last, year, today)
    # The latest that is not after it: "from December 20 to January 5".
    first = partial(_one_day, month=_MONTHS[month], day=int(day))
    ((begin, _),) = _dated(first, "", date.fromordinal(end - 1))
    return [(begin, end)]


def _months_to_months(groups: _Groups, today: date) -> list[_Days]:
    month, day, last_month, last_day, year = groups
    return _days_to_days((day, month, last_day, last_month, year), today)


def _iso_day(groups: _Groups, _today: date) -> list[_Days]:
    year, month, day = map(int, groups)
    return [_one_day(year, month, day)]


def _day_in_figures(groups: _Groups, _today: date) -> list[_Days]:
    one, other, year = map(int, groups)
    low, high = min(one, other), max(one, other)
    if low != high <= 12:
        raise ValueError  # which of them is the month?
    return [_one_day(year, low, high)]


def _month(groups: _Groups, today: date) -> list[_Days]:
    lead, *names, year = groups
    if lead == "this" and names[0] in _VERBS:
        raise ValueError
    return [
        days
        for name in filter(None, names)
        for days in _dated(_month_in(name), year, today, over=lead == "last")
    ]


def _month_in(name: str) -> Callable[[int], _Days]:
    return lambda year: _months(year, _MONTHS[name])


def _season(groups: _Groups, today: date) -> list[_Days]:
    after_last, name, year = groups
    return _dated(lambda y: _months(y, _SEASONS[after_last or name], 3), year, today, over=True)


def _holiday(groups: _Groups, today: date) -> list[_Days]:
    lead, name, year = groups
    if not (lead or year):
        raise ValueError  # more often a subject than a day
    day = _HOLIDAYS[name.replace("'", "")]
    return _dated(lambda y: _one_day(y, *day), year, today, over=lead == "last")


def _year(groups: _Groups, _today: date) -> list[_Days]:
    return [_months(int(groups[0]), 1, 12)]


def _any(words: Iterable[str]) -> str:
    # The longest first: the first that matches is taken.
    return "|".join(sorted(words, key=len, reverse=True))


# Compiled at the first use: to start, most programs need none of it.
@cache
def _hint() -> tuple[re.Pattern[str], frozenset[str]]:
    """Return what finds words and years, and the words of which each expression has one."""
    words = {"ago", "yesterday", "today", "last", "past", "this", "valentine", "valentines"}
    words |= {"christmas", "halloween", "year", "years", *_MONTHS, *_WEEKDAYS, *_SEASONS}
    return re.compile(r"[a-z]+|\d{4}"), frozenset(words)


def _may_name_a_date(text: str) -> bool:
    pattern, words = _hint()
    found = pattern.findall(text)
    return not words.isdisjoint(found) or any(map(str.isdigit, found))


@cache
def _grammar() -> tuple[re.Pattern[str], dict[int, tuple[_Reader, int]]]:
    """Return one pattern of all rules and, by the number of each one's group, its reader.

    Beside a reader stands how many groups its rule has within its own.
    """
    readers: dict[int, tuple[_Reader, int]] = {}
    group = 1
    rules = _rules()
    for rule, reader in rules:
        inner = len(re.findall(r"\((?!\?)", rule))
        readers[group] = reader, inner
        group += inner + 1
    return re.compile(rf"\b(?:{'|'.join(f'({rule})' for rule, _ in rules)})", re.ASCII), readers


def _rules() -> tuple[tuple[str, _Reader], ...]:
    """Return the expressions; of those that begin at one place the first is taken."""
    month, weekday, season = (f"({_any(names)})" for names in (_MONTHS, _WEEKDAYS, _SEASONS))
    month_alone = rf"{month}\b(?!,? \d\d?(?:st|nd|rd|th)?\b)"
    # Of "twenty-five" nothing is read, and not "five".
    tens = f"(?:(?:{_any(_TENS)})[ -])?"
    count, unit = rf"({tens}(?:{_any(_COUNTS)}|\d{{1,4}}))", "(day|week|month|year)s?"
    # "the last week of May", "last week before the exam": who knows when that was?
    not_of = r"\b(?! (?:of|before|after|prior)\b)"
    not_dated = rf"\b(?!,? (?:the )?(?:\d|(?:{_any(_MONTHS)}|before|after|of|in)\b))"
    owners = ("my", "your", "his", "her", "our", "their", "s")
    # One letter ahead spares most words the looks behind.
    mine = "(?=[lopt])" + "".join(rf"(?<!\b{owner} )" for owner in owners)
    year = r"((?:19|20)\d\d)\b"
    in_year = r"(?:,? ?\(?(?:of )?\b((?:19|20)\d\d|(?:last|this) year)\b)?"
    before = f"on|since|until|by|before|after|as of|between|from|(?:{_any(_WEEKDAYS)}),?"
    on = f"(?:({before}) (?:the )?)?"
    day_of = rf"(?:the )?(\d\d?)(?:st|nd|rd|th)?(?: of)? {month}\b\.?"
    day_in = rf"{month}\.? (?:the )?(\d\d?)(?:st|nd|rd|th)?\b"
    to = "(?:and|to|until|till|through)"
    whole = r"\b(?!:\d|\.\d|,\d{3}\b)"
    # What follows if it is neither the end nor punctuation; "\x28" is no group to count.
    word = r"[^ ?!.,;:\x28)\"']"
    then = rf"(?:(?=( ?{word}{{1,9}}))|)"
    part = "(?:beginning|start|middle|end|half|month|weeks?|weekend|days?) of"
    lead = rf"(in|since|during|throughout|around|early|mid|late|last|past|this|{part})"
    no_figure = r"(?![:/%-]|[.,]\d)"
    holiday = r"christmas eve|christmas|halloween|new year'?s eve|new year'?s|valentine'?s"
    return (
        (rf"(?<![\w.,/-])(?<!half ){count} {unit} ago\b", _ago),
        (
            rf"(?:(?:last|past) {count} {unit}|(?:the last|past) (week|month|year)){not_of}",
            _until_now,
        ),
        (r"((?:the )?day before yesterday|yesterday|(?<!ago )today|last night)\b", _near_day),
        (rf"{mine}(?!this weekend)(last|this) (weekend|week|month|year){not_of}", _period),
        (rf"{mine}(last|past|this|on) {weekday}{not_dated}", _weekday),
        (rf"(?:between|from) {day_of} {to} {day_of}{in_year}", _days_to_days),
        (rf"(?:between|from) {day_in} {to} {day_in}{in_year}", _months_to_months),
        (rf"{on}(\d\d?)(st|nd|rd|th)?( of)? {month}\b\.?{in_year}{then}", _day_and_month),
        (rf"{on}{month}\.? (\d\d?)(st|nd|rd|th)?{whole}{in_year}{then}", _month_and_day),
        (r"(?<![\w./-])(\d{4})[/.-](\d\d?)[/.-](\d\d?)(?!\d)", _iso_day),
        (rf"(?<![\w./-])(\d\d?)[/.-](\d\d?)[/.-]{year}(?![/-])", _day_in_figures),
        (rf"{lead}[ -]{month_alone}(?:(?: and| or| to) {month_alone})?{in_year}", _month),
        (rf"(){month}\.?,? (?:of )?((?:19|20)\d\d|last year)\b", _month),
        (rf"()({_any(_NO_NAMES)})\b()", _month),
        (rf"{mine}(?:last|past) {season}{not_of}|{season}(?: of|,)? {year}", _season),
        (rf"(?:(on|at|over|last|past|since) )?({holiday})(?: day)?\b{in_year}", _holiday),
        (rf"(?:in|since|during|throughout|until|the year|early|mid|late) {year}{no_figure}", _year),
    )
