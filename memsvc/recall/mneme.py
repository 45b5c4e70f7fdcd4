"""Mneme's ranking (`smolAmem` 1.0.0), for those who come from there: its formula and its window, to the last digit.

score = max(0, similarity) · authority · recency · confidence, over the 4·k nearest only. The default ranking is in
`memsvc.recall.search`; it has no such window, and age alone pushes nothing out.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

from memsvc.format import MemoryKind
from memsvc.tree.visibility import has_expired

# How many of the nearest are looked at for each one that is answered.
CANDIDATES_FOR_EACH: Final = 4
HALF_LIFE_DAYS: Final = 7.0
# Mneme has no procedures; here they weigh as facts do.
AUTHORITY: Final[Mapping[MemoryKind, float]] = MappingProxyType(
    {MemoryKind.SEMANTIC: 1.0, MemoryKind.EPISODIC: 0.7, MemoryKind.PROCEDURAL: 1.0}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """What Mneme's `retrieve` takes. `weights` replaces the default ones: a kind that is left out weighs nothing.

    Raises ValueError for a half-life that is not above zero.
    """

    half_life_days: float = HALF_LIFE_DAYS
    use_confidence: bool = True
    weights: Mapping[MemoryKind, float] = field(default_factory=lambda: AUTHORITY)

    def __post_init__(self) -> None:
        if not self.half_life_days > 0:
            raise ValueError("half_life_days must be above zero")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate[Key]:
    """A memory and its cosine with the query. `confidence` is from 0 to 1, and counts for all but episodes."""

    key: Key
    similarity: float
    kind: MemoryKind
    created: datetime
    confidence: float = 1.0
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Scored[Key]:
    """`similarity` as it was, below zero too."""

    key: Key
    score: float
    similarity: float
    recency: float
    authority: float
    confidence: float


def retrieve[Key](
    candidates: Iterable[Candidate[Key]], *, k: int, scoring: Scoring, now: datetime
) -> list[Scored[Key]]:
    """The best `k` of the 4·k nearest, best first; of equal scores the nearer and then the newer one.

    What has expired is dropped after the window is cut, so that it uses up places in it, as there.
    """
    if k <= 0:
        return []
    ordered = sorted(candidates, key=lambda each: (each.similarity, each.created), reverse=True)
    window = ordered[: CANDIDATES_FOR_EACH * k]
    scored = [_scored(each, scoring, now) for each in window if not has_expired(each.expires_at, now)]
    return sorted(scored, key=lambda each: each.score, reverse=True)[:k]


def _scored[Key](candidate: Candidate[Key], scoring: Scoring, now: datetime) -> Scored[Key]:
    authority = scoring.weights.get(candidate.kind, 0.0)
    # 1 for now and for the future, a half after each half-life.
    age_days = max(0.0, (now - candidate.created) / timedelta(days=1))
    recency = float(0.5 ** (age_days / scoring.half_life_days))
    counts = scoring.use_confidence and candidate.kind is not MemoryKind.EPISODIC
    confidence = candidate.confidence if counts else 1.0
    score = max(0.0, candidate.similarity) * authority * recency * confidence
    return Scored(candidate.key, score, candidate.similarity, recency, authority, confidence)
