from typing import Any

import pytest
from pytest_django import Settings
from rest_framework.test import APIClient

from memsvc.recall.accesses import ACCESS_COUNTS
from memsvc.recall.vectors import embed_tree
from memsvc.tree.trees import tree_of
from tenants.models import Tenant
from tests.api.support import ENTRIES, SEARCH, add_entry, post, problem


@pytest.fixture(autouse=True)
def letters(settings: Settings) -> None:
    settings.EMBEDDER = "tests.recall.langchain.made"


def test_a_search_is_scored_as_mneme_scores_it(api: APIClient, stranger: APIClient, alice: Tenant) -> None:
    sure = add_entry(api, "abba", confidence="high")
    event = add_entry(api, "abba", category="events")
    embed_tree(tree_of(alice, "default"))

    asked: dict[str, Any] = {"query": "abba", "scoring": "mneme"}
    plain = post(api, SEARCH, **asked).json()
    weighed = post(
        api, SEARCH, **asked, authority_weights={"episodic": 2}, use_confidence=False, half_life_days=30.5
    ).json()

    assert [hit["id"] for hit in plain["items"]] == [sure["id"], event["id"]]
    assert [hit["parts"]["authority"] for hit in plain["items"]] == [1.0, 0.7]
    assert [hit["parts"]["confidence"] for hit in plain["items"]] == [0.9, 1.0]
    assert (plain["next"], plain["truncated"]) == (None, False)
    assert [hit["id"] for hit in weighed["items"]] == [event["id"], sure["id"]]
    assert [hit["parts"]["authority"] for hit in weighed["items"]] == [2.0, 0.0]
    assert post(stranger, SEARCH, **asked).json()["items"] == []
    # The fact weighed nothing the second time, which says that it is no answer.
    ACCESS_COUNTS.flush()
    counts = [api.get(f"{ENTRIES}/{entry['id']}/accesses").json()["count"] for entry in (sure, event)]
    assert counts == [1, 2]


@pytest.mark.parametrize(
    "body",
    [
        {"half_life_days": 0},
        {"half_life_days": -1},
        {"half_life_days": "7"},
        {"half_life_days": 1e300},
        {"half_life_days": True},
        {"authority_weights": {"semantic": -0.1}},
        {"authority_weights": {"working": 1}},
        {"authority_weights": {"semantic": "1"}},
        {"authority_weights": [1]},
        {"use_confidence": "perhaps"},
        {"query": ""},
        {"query": "  "},
        {"mode": "lexical"},
        {"recency": True},
        {"timezone": "Europe/Berlin"},
        {"cursor": "x"},
        {"scoring": "bm25"},
        {"scoring": "memsvc", "half_life_days": 7},
        {"scoring": "memsvc", "use_confidence": False},
        {"scoring": "memsvc", "authority_weights": {}},
    ],
)
def test_what_makes_no_sense_is_refused(api: APIClient, body: dict[str, Any]) -> None:
    status, _ = problem(post(api, SEARCH, **{"query": "abba", "scoring": "mneme", **body}))

    assert status == 400


def test_without_an_embedder_it_can_not_be_done(api: APIClient, settings: Settings) -> None:
    settings.EMBEDDER = "none"

    assert problem(post(api, SEARCH, query="abba", scoring="mneme")) == (409, "no_embedder")
