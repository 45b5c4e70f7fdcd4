from datetime import UTC, datetime, timedelta, timezone
from typing import Any, get_args, get_type_hints

import pytest

from memsvc.api import serializers
from memsvc.contract.requests import (
    Choice,
    EntriesRequest,
    EntryRequest,
    RevisionsRequest,
    SearchRequest,
    SuccessorRequest,
    UndoRequest,
    given,
)
from memsvc.contract.wire import members_of
from memsvc.format import MemoryCategory

TAKEN: dict[Any, type[serializers.Input]] = {
    SearchRequest: serializers.SearchInput,
    EntriesRequest: serializers.EntriesQuery,
    EntryRequest: serializers.EntryInput,
    SuccessorRequest: serializers.SuccessorInput,
    RevisionsRequest: serializers.RevisionsQuery,
    UndoRequest: serializers.UndoInput,
}
REQUESTS = [pytest.param(kind, id=kind.__name__) for kind in TAKEN]


def test_what_is_left_at_its_default_is_not_sent() -> None:
    assert given(SearchRequest("Berlin", tags=["acme"], recency=True, limit=3)) == {
        "query": "Berlin",
        "tags": ["acme"],
        "recency": True,
        "limit": 3,
    }


def test_nothing_is_sent_where_it_says_something() -> None:
    entry = EntryRequest(MemoryCategory.FACTS, "Water is wet.", expires_at=None)

    assert given(entry) == {"category": "facts", "body": "Water is wet.", "expires_at": None}


def test_an_instant_is_sent_with_its_offset_and_a_naive_one_in_utc() -> None:
    east = datetime(2026, 3, 1, 1, tzinfo=timezone(timedelta(hours=2)))

    assert (
        given(EntryRequest(MemoryCategory.EVENTS, "A walk.", when=east))["when"]
        == "2026-03-01T01:00:00+02:00"
    )
    assert given(RevisionsRequest(since=datetime(2026, 3, 1, tzinfo=UTC).replace(tzinfo=None))) == {
        "since": "2026-03-01T00:00:00+00:00"
    }


@pytest.mark.parametrize("kind", REQUESTS)
def test_the_service_takes_what_can_be_asked(kind: Any) -> None:
    asked = {each.name for each in members_of(kind)}

    assert set(TAKEN[kind]().fields) - asked <= {"revision", "at"}
    assert asked <= set(TAKEN[kind]().fields)


@pytest.mark.parametrize("kind", REQUESTS)
def test_a_choice_is_typed_as_what_it_is_of(kind: Any) -> None:
    for hint in get_type_hints(kind, include_extras=True).values():
        for choice in (mark for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, Choice)):
            literal = [
                each
                for each in (get_args(hint)[0], *get_args(get_args(hint)[0]))
                if hasattr(each, "__value__")
            ]
            assert get_args(literal[0].__value__) == tuple(each.value for each in choice.of)
