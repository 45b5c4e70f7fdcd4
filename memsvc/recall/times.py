"""Words about time in a question, as ranges: "yesterday", "last week", "3 days ago", "in May 2025"."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
_UNITS = {"day": 1, "week": 7, "month": 30, "year": 365}
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7}


@dataclass(frozen=True, slots=True)
class Range:
    """From `since` (inclusive) to `until` (exclusive)."""

    since: datetime
    until: datetime

    def holds(self, moment: datetime) -> bool:
        return self.since <= moment < self.until


def asked_range(query: str, now: datetime) -> Range | None:
    """The time that a question is about, seen from `now`, in whose time zone days begin; None when it says none."""
    text = query.casefold()
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    for pattern, range_of in _PATTERNS:
        if found := pattern.search(text):
            return range_of(found, midnight)
    return None


def _days(midnight: datetime, since: int, until: int) -> Range:
    return Range(midnight + timedelta(days=since), midnight + timedelta(days=until))


def _week(midnight: datetime, back: int) -> Range:
    return _days(midnight, -midnight.weekday() - 7 * back, -midnight.weekday() - 7 * back + 7)


def _month(year: int, month: int, midnight: datetime) -> Range:
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    following = (year + 1, 1) if month == 12 else (year, month + 1)
    first = midnight.replace(year=year, month=month, day=1)
    return Range(first, midnight.replace(year=following[0], month=following[1], day=1))


def _year(year: int, midnight: datetime) -> Range:
    first = midnight.replace(year=year, month=1, day=1)
    return Range(first, first.replace(year=year + 1))


def _ago(found: re.Match[str], midnight: datetime) -> Range:
    number, unit = _number(found[1]), _UNITS[found[2]]
    around = 0 if unit == 1 else unit // 2
    return _days(midnight, -number * unit - around, -number * unit + around + 1)


def _last_ones(found: re.Match[str], midnight: datetime) -> Range:
    return _days(midnight, -_number(found[1]) * _UNITS[found[2]], 1)


def _number(text: str) -> int:
    return min(int(text) if text.isdecimal() else _NUMBERS[text], 1000)


def _named_month(found: re.Match[str], midnight: datetime) -> Range:
    month = _MONTHS.index(found[1]) + 1
    year = int(found[2]) if found[2] else midnight.year - (month > midnight.month)
    return _month(year, month, midnight)


_COUNT = r"(\d{1,3}|" + "|".join(_NUMBERS) + r")"
_UNIT = r"(day|week|month|year)s?"
type _RangeOf = Callable[[re.Match[str], datetime], Range]
_PATTERNS: list[tuple[re.Pattern[str], _RangeOf]] = [
    (re.compile(rf"\b{_COUNT} {_UNIT} ago\b"), _ago),
    (re.compile(rf"\b(?:last|past|previous) {_COUNT} {_UNIT}\b"), _last_ones),
    (re.compile(r"\bday before yesterday\b"), lambda _, today: _days(today, -2, -1)),
    (re.compile(r"\b(?:yesterday|last night)\b"), lambda _, today: _days(today, -1, 0)),
    (
        re.compile(r"\b(?:today|tonight|this (?:morning|afternoon|evening))\b"),
        lambda _, today: _days(today, 0, 1),
    ),
    (re.compile(r"\bthis week\b"), lambda _, today: _week(today, 0)),
    (re.compile(r"\b(?:last|past|previous) week\b"), lambda _, today: _week(today, 1)),
    (re.compile(r"\bthis month\b"), lambda _, today: _month(today.year, today.month, today)),
    (
        re.compile(r"\b(?:last|past|previous) month\b"),
        lambda _, today: _month(today.year, today.month - 1, today),
    ),
    (re.compile(r"\bthis year\b"), lambda _, today: _year(today.year, today)),
    (re.compile(r"\b(?:last|past|previous) year\b"), lambda _, today: _year(today.year - 1, today)),
    (re.compile(rf"\bin ({'|'.join(_MONTHS)})(?:,? (?:of )?((?:19|20)\d\d))?\b"), _named_month),
    (re.compile(r"\bin ((?:19|20)\d\d)\b"), lambda found, today: _year(int(found[1]), today)),
]
