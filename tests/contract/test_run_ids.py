"""The id of a run, and how it stands in a header."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsvc.contract.requests import RUN_ID_HEADER, run_id_headers, run_id_in_header
from memsvc.format import InvalidText
from tenants.actors import Actor, ActorKind

LONGEST = "🐘" * 200
RUN_IDS = st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=200)


@given(RUN_IDS)
def test_every_id_goes_through_a_header_and_back(run_id: str) -> None:
    value = run_id_headers(run_id).get(RUN_ID_HEADER, "")

    assert value == "".join(value.split())
    assert value.isascii()
    assert run_id_in_header(value) == run_id


def test_what_a_header_holds_as_it_is_stays() -> None:
    plain = "thread:7/step_3,a=b&c;(x)[y]{z}<>\"'`^|~!?#$*+.-@\\"

    assert run_id_headers(plain) == {RUN_ID_HEADER: plain}
    assert run_id_headers(" 100 % ") == {RUN_ID_HEADER: "%20100%20%25%20"}


def test_without_an_id_there_is_no_header() -> None:
    assert run_id_headers("") == {}
    assert run_id_in_header("") == ""


@pytest.mark.parametrize(
    "run_id", [LONGEST + "x", "x" * 5000, "a\0b", "a\nb", "\t", "\x7f", "\x85", "\ud800"]
)
def test_what_names_no_run_is_refused_wherever_it_comes_from(run_id: str) -> None:
    doors: list[Any] = [run_id_headers, lambda it: Actor(ActorKind.KEY, "id", "name", run_id=it)]
    for door in doors:
        with pytest.raises(InvalidText, match="run_id"):
            door(run_id)


@pytest.mark.parametrize(
    "value",
    ["café", "a b", "a\tb", " a", "100%", "%4", "%zz", "%00", "%0a", "%C2%85", "%ff", "%ED%A0%80", "x" * 201],
)
def test_a_header_that_names_no_run_is_refused(value: str) -> None:
    with pytest.raises(InvalidText):
        run_id_in_header(value)
