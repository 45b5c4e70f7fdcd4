"""Mneme's ranking: its own answers to eight queries, and the same formula over what is stored here.

`mneme_retrieve.json` holds what `retrieve` of smolAmem 1.0.0 answered, in memory and with its `HashEmbedder(8)`, to
queries over 40 made-up records, a tenth of them expired. Its vectors have no meaning: it checks arithmetic and order.
"""

import json
from datetime import UTC, datetime, timedelta
from math import sqrt
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from memsvc.format import Confidence, InvalidText, MemoryKind
from memsvc.recall.embedding import embedder
from memsvc.recall.mneme import Candidate, Scoring, retrieve
from memsvc.recall.mneme_search import NoEmbedder, search_as_mneme
from memsvc.recall.search import query_vector
from memsvc.recall.vectors import embed_tree
from memsvc.tree import services
from memsvc.tree.access import Access
from memsvc.tree.drafts import SuccessorDraft
from memsvc.tree.errors import Unavailable
from memsvc.tree.models import Block
from memsvc.tree.reads import EntryFilter
from tests.tree.support import access_to, add, in_days, revision

GOLDEN = json.loads(Path(__file__).with_name("mneme_retrieve.json").read_text())
NOW = datetime.fromisoformat(GOLDEN["now"])


def cosine(one: list[float], other: list[float]) -> float:
    inner = sum(a * b for a, b in zip(one, other, strict=True))
    return inner / sqrt(sum(a * a for a in one)) / sqrt(sum(b * b for b in other))


def candidate(record: dict[str, Any], query: list[float]) -> Candidate[str]:
    expires_at = record["expires_at"]
    return Candidate(
        key=record["id"],
        similarity=cosine(record["embedding"], query),
        kind=MemoryKind(record["tier"]),
        created=datetime.fromisoformat(record["created_at"]),
        confidence=1.0 if record["confidence"] is None else record["confidence"],
        expires_at=datetime.fromisoformat(expires_at) if expires_at else None,
    )


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: case["query"])
def test_mnemes_own_answers_come_out_to_six_digits_in_their_order(case: dict[str, Any]) -> None:
    args = dict(case["args"])
    k, tiers = args.pop("k", 5), args.pop("tiers", ["episodic", "semantic"])
    if weights := args.pop("authority_weights", None):
        args["weights"] = {MemoryKind(tier): weight for tier, weight in weights.items()}
    records = [record for record in GOLDEN["records"] if record["tier"] in tiers]

    found = retrieve(
        [candidate(record, case["query_embedding"]) for record in records],
        k=k,
        scoring=Scoring(**args),
        now=NOW,
    )

    assert [each.key for each in found] == [each["id"] for each in case["expected"]]
    for each, expected in zip(found, case["expected"], strict=True):
        for part in ("score", "similarity", "recency", "authority"):
            assert getattr(each, part) == pytest.approx(expected[part], abs=1e-6, rel=0)


def test_nothing_is_asked_for_and_nothing_comes() -> None:
    assert retrieve([], k=5, scoring=Scoring(), now=NOW) == []
    assert retrieve([candidate(GOLDEN["records"][0], [1.0] * 8)], k=0, scoring=Scoring(), now=NOW) == []


@pytest.mark.parametrize("half_life", [0, -1, float("nan")])
def test_a_half_life_is_above_zero(half_life: float) -> None:
    with pytest.raises(ValueError, match="half_life_days"):
        Scoring(half_life_days=half_life)


# Over what is stored

pytestmark = pytest.mark.django_db


@pytest.fixture
def letters(settings: Settings) -> None:
    """An embedder whose vectors are counts of letters."""
    settings.EMBEDDER = "tests.recall.langchain.made"


WORDS = ["bad", "cab", "dad", "add", "bed", "fade", "gag", "abacab", "faced", "badge", "egg", "deaf"]
STEPS = [Confidence.LOW, Confidence.MEDIUM, Confidence.HIGH]
TRUST = dict(zip(STEPS, (0.3, 0.6, 0.9), strict=True))


def stored(memory: Access) -> dict[str, Candidate[str]]:
    """Twelve entries of different ages, kinds and confidence; what their places depend on, by id."""
    vector, model = query_vector("abba"), embedder()
    assert vector is not None
    assert model is not None
    candidates = {}
    for n, word in enumerate(WORDS):
        category = "facts" if n % 2 else "events"
        when = datetime.now(tz=UTC) - timedelta(days=n)
        entry = add(memory, word, category, when=when, confidence=STEPS[n % 3]).entry
        candidates[entry.entry_id] = Candidate(
            key=entry.entry_id,
            similarity=cosine(model.embed([word])[0].tolist(), list(vector.values)),
            kind=entry.kind,
            created=entry.created,
            confidence=TRUST[entry.confidence],
        )
    embed_tree(memory.tree)
    return candidates


@pytest.mark.parametrize(
    ("limit", "scoring"),
    [
        (5, Scoring()),
        (1, Scoring(half_life_days=0.5)),
        (2, Scoring(use_confidence=False)),
        (12, Scoring(weights={MemoryKind.EPISODIC: 3.0})),
    ],
)
def test_stored_entries_are_ranked_by_the_same_formula(
    memory: Access, letters: None, limit: int, scoring: Scoring
) -> None:
    candidates = stored(memory)
    expected = retrieve(candidates.values(), k=limit, scoring=scoring, now=datetime.now(tz=UTC))

    hits = search_as_mneme(memory, "abba", limit=limit, scoring=scoring).items

    # Vectors are kept at half precision: 11 bits of each number.
    assert [hit.score for hit in hits] == pytest.approx([each.score for each in expected], abs=2e-3)
    assert {hit.entry.entry_id for hit in hits if hit.score} == {each.key for each in expected if each.score}
    for hit in hits:
        of = candidates[hit.entry.entry_id]
        assert hit.parts.keys() == {"similarity", "recency", "authority", "confidence"}
        assert hit.parts["similarity"] == pytest.approx(of.similarity, abs=2e-3)
        assert hit.parts["authority"] == scoring.weights.get(of.kind, 0.0)
        trusted = scoring.use_confidence and of.kind is MemoryKind.SEMANTIC
        assert hit.parts["confidence"] == (of.confidence if trusted else 1.0)


def test_only_the_nearest_four_for_each_answer_are_looked_at(memory: Access, letters: None) -> None:
    now = datetime.now(tz=UTC)
    for n in range(4):
        add(memory, "abba" * (n + 3), when=now - timedelta(days=900 + n))
    recent = add(memory, "abbc" * 3, when=now).entry.entry_id
    embed_tree(memory.tree)

    one, two = (search_as_mneme(memory, "abba" * 4, limit=limit).items for limit in (1, 2))

    assert one[0].entry.entry_id != recent
    assert two[0].entry.entry_id == recent


def test_filters_come_before_the_window_and_what_is_hidden_takes_no_place(
    memory: Access, stranger: Access, letters: None
) -> None:
    for _ in range(5):
        hidden = add(memory, "abba", expires_at=in_days(1)).entry.entry_id
        Block.objects.filter(entry_id=hidden).update(expires_at=in_days(-1))
    old = add(memory, "abba").entry.entry_id
    new = services.supersede_entry(memory, old, SuccessorDraft(body="abba b")).entry.entry_id
    event = add(memory, "fed", "events").entry.entry_id
    add(stranger, "abba")
    for access in (memory, stranger):
        embed_tree(access.tree)

    def ids(access: Access = memory, **options: Any) -> list[str]:
        return [hit.entry.entry_id for hit in search_as_mneme(access, "abba", **options).items]

    assert ids(limit=1) == [new]
    assert sorted(ids()) == sorted([new, event])
    assert ids(limit=1, wanted=EntryFilter(kind=MemoryKind.EPISODIC)) == [event]
    assert ids(access_to(memory.tree.tenant, prefix="/memory/episodic_memory"), limit=1) == [event]
    assert ids(revision=revision(memory) - 1) == [new]


def test_without_a_model_it_says_so(memory: Access, settings: Settings) -> None:
    add(memory, "abba")
    settings.EMBEDDER = "none"
    with pytest.raises(NoEmbedder):
        search_as_mneme(memory, "abba")
    settings.EMBEDDER = "tests.recall.langchain.broken"
    with pytest.raises(Unavailable):
        search_as_mneme(memory, "abba")
    with pytest.raises(InvalidText):
        search_as_mneme(memory, " ")
