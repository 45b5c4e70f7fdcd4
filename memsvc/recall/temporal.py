"""Words about time in a question, as ranges: "yesterday", "last Friday", "in May 2025", "since Monday".

A grammar of our own, in English, for the parsers that there are find a point in time where a range is asked for, and
take words for dates that are none: "you may go", "sun protection", "Friday Harbour". Here a name of a day or a month
counts only together with what makes a date of it. Other words are literal, as all words of a query are.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_UNITS = {"day": 1, "week": 7, "month": 30, "year": 365}
_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
# From how many to how many; of two that begin alike the longer one first.
_COUNTS = {
    **{number: (count, count) for count, number in enumerate(_NUMBERS, start=1)},
    **dict.fromkeys(("a couple of", "a couple", "couple of", "couple"), (2, 3)),
    **dict.fromkeys(("a few", "few"), (2, 5)),
    "several": (3, 7),
    **dict.fromkeys(("an", "a"), (1, 1)),
}
# No entry is older, and every zone knows it.
_BEGINNING = datetime(1, 1, 2, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Range:
    """From `since` (inclusive) to `until` (exclusive)."""

    since: datetime
    until: datetime

    def holds(self, instant: datetime) -> bool:
        return self.since <= instant < self.until


def asked_range(query: str, now: datetime) -> Range | None:
    """The time that a question is about, seen from `now`, in whose time zone days begin; None when it says none.

    Of several times the first counts. What has no year is the last one that has begun: memory is of the past.
    """
    text = " ".join(query.casefold().split())
    # Days are counted by the calendar and the clock on the wall, so that each has its length when clocks change.
    today = now.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    for word in _WORD.finditer(text):
        if found := _stated(text, word.start(), today):
            return found
    return None


def _stated(text: str, at: int, today: datetime) -> Range | None:
    """The time that is stated from a place on."""
    lead = _LEAD.match(text, at)
    word, at = (lead[1], lead.end()) if lead else ("", at)
    period = _period(text, at, today, word)
    if period is None:
        return None
    its, end = period
    tomorrow = today + timedelta(days=1)
    match word:
        case "since":
            return Range(its.since, max(its.until, tomorrow))
        case "after":
            return Range(its.until, max(its.until, tomorrow))
        case "before":
            return Range(_BEGINNING, its.since)
        case "until" | "till":
            return Range(_BEGINNING, its.until)
        case "between" | "from" if last := _LAST_OF_TWO.match(text, end):
            return _between(text, at, last.end(), today) or its
        case _:
            return its


def _between(text: str, first_at: int, last_at: int, today: datetime) -> Range | None:
    """From the first of two times through the last one; None where that is none."""
    last = _period(text, last_at, today, "between")
    # "Between November and January" may be seen from January: the November before it.
    for seen_from in (today, last[0].since) if last else ():
        first = _period(text, first_at, seen_from, "between")
        if first and last and first[0].since < last[0].since:
            return Range(first[0].since, last[0].until)
    return None


def _period(text: str, at: int, today: datetime, lead: str) -> tuple[Range, int] | None:
    """The period that is named at a place, behind a word that leads to it, and where its name ends."""
    for pattern, range_of, leads in _PERIODS:
        if not leads or lead in leads:
            found = pattern.match(text, at)
            its = range_of(found, today) if found else None
            if found and its:
                return its, found.end()
    return None


def _days(today: datetime, since: int, until: int) -> Range:
    return Range(today + timedelta(days=since), today + timedelta(days=until))


def _months(year: int, month: int, count: int, today: datetime) -> Range:
    """Some months; their number may lie outside of the year."""
    first, end = (divmod(12 * year + month - 1 + more, 12) for more in (0, count))
    return Range(*(today.replace(year=at[0], month=at[1] + 1, day=1) for at in (first, end)))


def _this_or_last(found: re.Match[str], today: datetime) -> Range:
    back = found["which"] != "this"
    match found["unit"]:
        case "week":
            return _week(today, back)
        case "weekend":
            return _days(_week(today, back).since, 5, 7)
        case "month":
            return _months(today.year, today.month - back, 1, today)
        case "quarter":
            return _months(today.year, today.month - (today.month - 1) % 3 - 3 * back, 3, today)
        case _:
            return _months(today.year - back, 1, 12, today)


def _week(today: datetime, back: int) -> Range:
    return _days(today, -today.weekday() - 7 * back, -today.weekday() - 7 * back + 7)


def _weekend(found: re.Match[str], today: datetime) -> Range:
    return _days(_week(today, today.weekday() < 5).since, 5, 7)


def _weekday(found: re.Match[str], today: datetime) -> Range:
    """One of this week, of the last one, or else the last one of that name; today's is the last one unless "last"
    stands before it.
    """
    day = next(number for number, name in enumerate(_WEEKDAYS) if name.startswith(found["day"][:3]))
    groups = found.groupdict()
    if week := groups.get("week"):
        return _days(_week(today, week != "this").since, day, day + 1)
    which = groups.get("which")
    if which == "this":
        return _days(_week(today, 0).since, day, day + 1)
    ago = (today.weekday() - day) % 7
    if which and not ago:
        ago = 7
    return _days(today, -ago, -ago + 1)


def _ago(found: re.Match[str], today: datetime) -> Range:
    (least, most), unit = _count(found["count"]), _UNITS[found["unit"]]
    around = 0 if unit == 1 else unit // 2
    return _days(today, -most * unit - around, -least * unit + around + 1)


def _last_ones(found: re.Match[str], today: datetime) -> Range:
    return _days(today, -_count(found["count"])[1] * _UNITS[found["unit"]], 1)


def _count(text: str) -> tuple[int, int]:
    return (int(text), int(text)) if text.isdecimal() else _COUNTS[text]


def _date(found: re.Match[str], today: datetime) -> Range | None:
    """A day of a month; None where the month has no such day."""
    groups = found.groupdict()
    month, day = _month_number(found["month"]), int(found["day"])
    years = [int(groups["year"])] if groups.get("year") else range(today.year, max(today.year - 9, 0), -1)
    for year in years:
        try:
            date = today.replace(year=year, month=month, day=day)
        except ValueError:
            continue
        if date <= today or groups.get("year"):
            return _days(date, 0, 1)
    return None


def _month(found: re.Match[str], today: datetime) -> Range:
    month = _month_number(found["month"])
    if year := found.groupdict().get("year"):
        return _months(int(year), month, 1, today)
    last = found.groupdict().get("which") is not None
    return _months(today.year - (month + last > today.month), month, 1, today)


def _month_number(name: str) -> int:
    if name.isdecimal():
        return int(name)
    return next(number for number, month in enumerate(_MONTHS, start=1) if month.startswith(name[:3]))


def _quarter(found: re.Match[str], today: datetime) -> Range:
    first = 3 * int(found["quarter"]) - 2
    year = int(found["year"]) if found["year"] else today.year - (first > today.month)
    return _months(year, first, 3, today)


type _RangeOf = Callable[[re.Match[str], datetime], Range | None]

_WORD = re.compile(r"(?<![\w./-])\w")
_BOUNDS = ("since", "after", "before", "until", "till", "between", "from")
_IN = ("in", "during")
_ON = ("on", *_BOUNDS)
_LEAD = re.compile(rf"({'|'.join((*_IN, 'on', 'at', 'over', *_BOUNDS))}) (?:the )?")
_LAST_OF_TWO = re.compile(r" (?:and|to|until|till|through) (?:the )?")

_WHICH = r"(?P<which>last|past|previous)"
_THIS = r"(?P<which>this|last|past|previous)"
_COUNT = rf"(?P<count>\d{{1,3}}|{'|'.join(_COUNTS)})"
_UNIT = r"(?P<unit>day|week|month|year)s?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_DAY = r"(?P<day>0?[1-9]|[12]\d|3[01])"
_TH = r"(?:st|nd|rd|th)"
_LONG = rf"(?P<month>{'|'.join(_MONTHS)})"
_SHORT = rf"(?P<month>{'|'.join(_MONTHS)}|(?:jan|feb|mar|apr|jun|jul|aug|sept|sep|oct|nov|dec)\b\.?)"
_PART = r"(?:early |mid[ -]|late )?"
# "Mon", "sat" and "sun" are words of their own.
_WEEKDAY = rf"(?P<day>{'|'.join(_WEEKDAYS)}|tues?|wed|thurs?|thu|fri)"
# Months that are words, too: without a word that leads to a date they need a year, or a day in letters.
_SURE = r"(?!march|mar\b|may)"
# Not "march of the penguins".
_NO_NAME = r"(?! of \D)"
# Nor "3.11", "friday-night", "the last may be".
_END = r"(?!\w|[.,:/-]\d|-\w)"
_NO_VERB = r"(?! (?:be|have|not)\b)"


def _named(
    pattern: str, range_of: _RangeOf, *leads: str
) -> tuple[re.Pattern[str], _RangeOf, tuple[str, ...]]:
    """A name of a period; with `leads` it is one only behind one of these words."""
    return re.compile(f"(?:{pattern}){_END}"), range_of, leads


# Of two that begin alike the longer one first.
_PERIODS = [
    _named(r"(?:the )?day before yesterday", lambda _, today: _days(today, -2, -1)),
    _named(r"yesterday", lambda _, today: _days(today, -1, 0)),
    # The day, too: what was done late is often noted under it.
    _named(r"last night", lambda _, today: Range(today - timedelta(days=1), today + timedelta(hours=6))),
    _named(
        r"today|tonight|this (?:morning|afternoon|evening)",
        lambda _, today: _days(today, 0, 1),
    ),
    _named(rf"{_COUNT} {_UNIT} ago", _ago),
    _named(rf"{_WHICH} {_COUNT} {_UNIT}", _last_ones),
    _named(rf"{_THIS} (?P<unit>weekend|week|month|quarter|year)", _this_or_last),
    _named(r"weekend", _weekend, *_IN, *_ON, "at", "over"),
    _named(rf"{_WEEKDAY} (?:of )?(?P<week>this|last|past|previous) week", _weekday),
    _named(rf"{_THIS} {_WEEKDAY}", _weekday),
    _named(_WEEKDAY, _weekday, *_ON),
    _named(r"(?P<year>(?:19|20)\d\d)-(?P<month>0[1-9]|1[0-2])-(?P<day>[0-3]\d)", _date),
    _named(rf"{_SHORT} (?:the )?{_DAY}{_TH}?,? {_YEAR}", _date),
    _named(rf"{_DAY}{_TH}? (?:of )?{_SHORT},? {_YEAR}", _date),
    _named(rf"{_PART}{_SHORT},? (?:of )?{_YEAR}", _month),
    _named(rf"{_PART}{_LONG}{_NO_NAME}", _month, *_IN),
    _named(rf"{_SHORT} (?:the )?{_DAY}{_TH}", _date),
    _named(rf"{_DAY}{_TH} of {_SHORT}", _date),
    _named(rf"{_SURE}{_SHORT} {_DAY}", _date),
    _named(rf"{_DAY}{_TH}? {_SURE}{_SHORT}{_NO_NAME}", _date),
    _named(rf"{_SHORT} {_DAY}", _date, *_ON),
    _named(rf"{_DAY}{_TH}? {_SHORT}{_NO_NAME}", _date, *_ON),
    _named(rf"{_PART}{_LONG}{_NO_NAME}", _month, *_BOUNDS),
    _named(rf"{_WHICH} {_LONG}{_NO_NAME}{_NO_VERB}", _month),
    _named(rf"q(?P<quarter>[1-4]) {_YEAR}", _quarter),
    _named(r"q(?P<quarter>[1-4])(?P<year>)", _quarter, *_IN, *_BOUNDS),
    _named(_YEAR, lambda found, today: _months(int(found["year"]), 1, 12, today), *_IN, *_BOUNDS),
]
