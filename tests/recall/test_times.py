from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from memsvc.recall.times import asked_range

WEDNESDAY = datetime(2026, 3, 4, 15, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("query", "since", "until"),
    [
        ("what happened today?", "2026-03-04", "2026-03-05"),
        ("Yesterday's errors", "2026-03-03", "2026-03-04"),
        ("the day before yesterday", "2026-03-02", "2026-03-03"),
        ("two days ago", "2026-03-02", "2026-03-03"),
        ("this week", "2026-03-02", "2026-03-09"),
        ("LAST WEEK", "2026-02-23", "2026-03-02"),
        ("a week ago", "2026-02-22", "2026-03-01"),
        ("in the last 10 days", "2026-02-22", "2026-03-05"),
        ("last month", "2026-02-01", "2026-03-01"),
        ("this month", "2026-03-01", "2026-04-01"),
        ("last year", "2025-01-01", "2026-01-01"),
        ("in December", "2025-12-01", "2026-01-01"),
        ("in february", "2026-02-01", "2026-03-01"),
        ("in May 2024", "2024-05-01", "2024-06-01"),
        ("in 2023", "2023-01-01", "2024-01-01"),
    ],
)
def test_words_about_time_are_ranges(query: str, since: str, until: str) -> None:
    found = asked_range(query, WEDNESDAY)

    assert found is not None
    assert (found.since.date().isoformat(), found.until.date().isoformat()) == (since, until)


@pytest.mark.parametrize(
    "query", ["the daily report", "weekly meeting", "may I?", "in 20235", "999999 days ago", ""]
)
def test_other_words_are_none(query: str) -> None:
    assert asked_range(query, WEDNESDAY) is None


def test_days_begin_where_the_asker_is() -> None:
    late = datetime(2026, 3, 4, 23, 30, tzinfo=UTC).astimezone(ZoneInfo("Asia/Tokyo"))

    found = asked_range("today", late)

    assert found is not None
    assert found.since == datetime(2026, 3, 4, 15, 0, tzinfo=UTC)


def test_the_last_day_of_a_month_has_a_month_before() -> None:
    found = asked_range("last month", datetime(2026, 1, 31, 12, tzinfo=UTC))

    assert found is not None
    assert found.since == datetime(2025, 12, 1, tzinfo=UTC)
