from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from memsvc.recall.temporal import asked_range

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
        ("What happened last  Friday?", "2026-02-27", "2026-02-28"),
        ("last Wednesday", "2026-02-25", "2026-02-26"),
        ("on Friday", "2026-02-27", "2026-02-28"),
        ("On Wednesday, what was said", "2026-03-04", "2026-03-05"),
        ("on Tuesday's call", "2026-03-03", "2026-03-04"),
        ("this Monday", "2026-03-02", "2026-03-03"),
        ("this Sunday", "2026-03-08", "2026-03-09"),
        ("Friday last week", "2026-02-27", "2026-02-28"),
        ("on Monday of last week", "2026-02-23", "2026-02-24"),
        ("last fri", "2026-02-27", "2026-02-28"),
        ("yesterday morning", "2026-03-03", "2026-03-04"),
        ("this morning", "2026-03-04", "2026-03-05"),
        ("last weekend", "2026-02-28", "2026-03-02"),
        ("over the weekend", "2026-02-28", "2026-03-02"),
        ("this weekend", "2026-03-07", "2026-03-09"),
        ("last night", "2026-03-03", "2026-03-04"),
        ("two weeks ago", "2026-02-15", "2026-02-22"),
        ("a couple of days ago", "2026-03-01", "2026-03-03"),
        ("a few days ago", "2026-02-27", "2026-03-03"),
        ("over the past couple of weeks", "2026-02-11", "2026-03-05"),
        ("on November 28", "2025-11-28", "2025-11-29"),
        ("on November 28, 2024", "2024-11-28", "2024-11-29"),
        ("on 28 November 2025", "2025-11-28", "2025-11-29"),
        ("the 28th of November", "2025-11-28", "2025-11-29"),
        ("Nov 28th", "2025-11-28", "2025-11-29"),
        ("notes of Nov. 28", "2025-11-28", "2025-11-29"),
        ("on March 4", "2026-03-04", "2026-03-05"),
        ("on March 5", "2025-03-05", "2025-03-06"),
        ("since May 5", "2025-05-05", "2026-03-05"),
        ("on February 29", "2024-02-29", "2024-03-01"),
        ("what was 2025-11-28 about?", "2025-11-28", "2025-11-29"),
        ("in March", "2026-03-01", "2026-04-01"),
        ("in March 2025", "2025-03-01", "2025-04-01"),
        ("invoices of March 2025", "2025-03-01", "2025-04-01"),
        ("in early May", "2025-05-01", "2025-06-01"),
        ("last March", "2025-03-01", "2025-04-01"),
        ("last May", "2025-05-01", "2025-06-01"),
        ("in the last quarter", "2025-10-01", "2026-01-01"),
        ("this quarter", "2026-01-01", "2026-04-01"),
        ("in Q3", "2025-07-01", "2025-10-01"),
        ("Q1 2025", "2025-01-01", "2025-04-01"),
        ("since Monday", "2026-03-02", "2026-03-05"),
        ("since last week", "2026-02-23", "2026-03-05"),
        ("since yesterday", "2026-03-03", "2026-03-05"),
        ("since 2025", "2025-01-01", "2026-03-05"),
        ("after Sunday", "2026-03-02", "2026-03-05"),
        ("before May", "0001-01-02", "2025-05-01"),
        ("until May", "0001-01-02", "2025-06-01"),
        ("before November 28, 2025", "0001-01-02", "2025-11-28"),
        ("between Monday and Wednesday", "2026-03-02", "2026-03-05"),
        ("between Friday and Tuesday", "2026-02-27", "2026-03-04"),
        ("between November and January", "2025-11-01", "2026-02-01"),
        ("from April to June 2024", "2024-04-01", "2024-07-01"),
        ("between 2026-01-03 and 2026-01-05", "2026-01-03", "2026-01-06"),
        ("between 2023 and 2024", "2023-01-01", "2025-01-01"),
        ("from Monday on", "2026-03-02", "2026-03-03"),
        ("march of the penguins yesterday", "2026-03-03", "2026-03-04"),
    ],
)
def test_words_about_time_are_ranges(query: str, since: str, until: str) -> None:
    found = asked_range(query, WEDNESDAY)

    assert found is not None
    assert (found.since.date().isoformat(), found.until.date().isoformat()) == (since, until)


@pytest.mark.parametrize(
    "query",
    [
        *("the daily report", "weekly meeting", "may I?", "in 20235", "999999 days ago", ""),
        *(
            "march of the penguins",
            "in march of the penguins",
            "they march on",
            "you may go",
            "this may be wrong",
        ),
        *(
            "how long it may last",
            "the last may be first",
            "the 1st may fail",
            "may 3 people join?",
            "march 5 miles",
        ),
        *("sun protection", "tips on sun protection", "the cat sat on sat tv", "mon repos", "Friday Harbour"),
        *(
            "closed on Fridays",
            "wed in white",
            "python 3.11",
            "on 3.11",
            "nov 3.11",
            "release v1.2.10",
            "in 2023.1",
        ),
        *(
            "a total of 2000 items",
            "over 2000 users",
            "the second attempt",
            "on second thought",
            "a day in the life",
        ),
        *("report-2026-11-28.csv", "mem_2026-11-28_ab12", "on November 31", "2026-13-01", "2026-02-30"),
        *(
            "9999-12-31",
            "0000-00-00",
            "on 0 May",
            "since then",
            "before the meeting",
            "between us",
            "from here to",
        ),
        *("am Freitag", "vor zwei Wochen", "先週の金曜日"),
    ],
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


@pytest.mark.parametrize(
    ("zone", "day", "query", "since", "until"),
    [
        # The clocks went forward on 29 March 2026, and back on 25 October.
        ("Europe/Berlin", "2026-03-30T08:00", "yesterday", "2026-03-28T23:00", "2026-03-29T22:00"),
        ("Europe/Berlin", "2026-03-30T08:00", "last Sunday", "2026-03-28T23:00", "2026-03-29T22:00"),
        ("Europe/Berlin", "2026-10-26T08:00", "on October 25", "2026-10-24T22:00", "2026-10-25T23:00"),
        ("Europe/Berlin", "2026-10-25T02:30:fold", "today", "2026-10-24T22:00", "2026-10-25T23:00"),
        ("Europe/Berlin", "2026-11-20T08:00", "in October", "2026-09-30T22:00", "2026-10-31T23:00"),
        ("America/New_York", "2026-11-03T01:00", "last weekend", "2026-10-31T04:00", "2026-11-02T05:00"),
        # There the clocks go forward and back at midnight.
        ("Africa/Cairo", "2026-04-24T12:00", "today", "2026-04-23T22:00", "2026-04-24T21:00"),
        ("America/Havana", "2026-11-01T12:00", "today", "2026-11-01T04:00", "2026-11-02T05:00"),
    ],
)
def test_a_day_is_from_midnight_to_midnight(zone: str, day: str, query: str, since: str, until: str) -> None:
    local = datetime.fromisoformat(day.removesuffix(":fold"))
    now = local.replace(tzinfo=ZoneInfo(zone), fold=int(day.endswith(":fold")))

    found = asked_range(query, now)

    assert found is not None
    assert [each.astimezone(UTC).isoformat()[:16] for each in (found.since, found.until)] == [since, until]
    assert found.holds(found.since.astimezone(UTC))
    assert not found.holds(found.until.astimezone(UTC))
