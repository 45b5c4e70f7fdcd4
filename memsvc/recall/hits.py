"""What a search answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memsvc.tree.results import EntryRead


@dataclass(frozen=True, slots=True)
class Highlight:
    """A piece of an entry's body, and the ranges in it (from, to; in characters) that answer the query."""

    text: str
    ranges: list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Hit:
    """An entry that was found, and why it stands where it stands.

    `score` is good for an order within one answer and for nothing else. `parts` says what it is made of. `line` is
    where the entry begins in its file, counted from 1. `duplicates` are the ids of equal entries,
    newest first, that are left out for this one, the newest of all; `score` and `parts` are the best that one has.
    """

    found: EntryRead
    score: float | None = None
    parts: Mapping[str, float] = field(default_factory=dict)
    highlights: Sequence[Highlight] = ()
    line: int | None = None
    duplicates: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class HitsPage:
    """A page of hits. `truncated` says that a ranking goes no deeper although more entries would fit."""

    items: list[Hit]
    next: str | None
    truncated: bool = False
