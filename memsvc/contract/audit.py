"""What was done to a tenant's memory, keys and people, and how anyone can tell that the account of it is whole.

Events stand in chains: one for each tree, and one for everything else of the tenant. The digest of an event is made of
what it says and of the digest before it, so that nothing in a chain can be changed, left out or moved without trace. It
is plain SHA-256: who has an export can check it with nothing else at hand.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Annotated, Final

from memsvc.contract.wire import Inside, Named, Note, to_json

# The outcome of what was done; that of what was refused is the code of the refusal.
DONE: Final = "done"
_UUID: Final = Note(format="uuid")


@dataclass(frozen=True, slots=True)
class AuditEventRead:
    """One act: who did what, from where, to which tree and revision, and what came of it.

    `outcome` is "done", or the code with which it was refused; refusals of a minute are told together, `times` says how
    many there were. `object` is the id of what it was about where that is no tree, such as a key's. Names are those of
    now and no part of the digest: null for what is gone. What was written, and at which path, is never told.
    """

    chain: Annotated[str, _UUID]
    number: Annotated[int, Note("Of its chain, from 1 on and without gaps.")]
    digest: Annotated[str, Note("SHA-256, in hexadecimal digits.")]
    at: datetime
    action: str
    outcome: str
    times: int
    actor_kind: Annotated[str, Inside("actor"), Named("kind")]
    actor_id: Annotated[str, Inside("actor"), Named("id")]
    actor_name: Annotated[str | None, Inside("actor"), Named("name")]
    address: Annotated[str, Note("Of the client; empty where none was known.")]
    request_id: str
    tree_id: Annotated[str, Note("Empty where it was about no tree.")]
    tree: str | None
    revision: int | None
    object_id: Annotated[str, Named("object")]
    reason: Annotated[str, Note("What an operator gave as the reason.")]


def digest_of(event: AuditEventRead, previous: str) -> str:
    """The digest that an event has after the one before it in its chain; the first comes after the empty text."""
    return sha256(f"{previous}\n{event.number}\n{said(event)}".encode()).hexdigest()


def said(event: AuditEventRead) -> str:
    """All that an event says but where it stands: a JSON array, as its digest is made of."""
    parts = (
        *(
            event.chain,
            to_json(event.at),
            event.action,
            event.outcome,
            event.times,
            event.actor_kind,
            event.actor_id,
        ),
        *(event.address, event.request_id, event.tree_id, event.revision, event.object_id, event.reason),
    )
    return _as_json(parts)


_as_json: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class Head:
    """Where a chain ends: the number and the digest of its last event; 0 and empty while there is none."""

    number: int
    digest: str


START: Final = Head(0, "")


def heads_as_text(heads: Mapping[str, Head]) -> str:
    """Where chains end, to be kept until the next check."""
    return "".join(f"{chain} {head.number} {head.digest}\n" for chain, head in sorted(heads.items()))


def heads_in(text: str) -> list[tuple[str, Head]]:
    """What `heads_as_text` has written. Raises ValueError for anything else."""
    lines = [line.split() for line in text.splitlines()]
    return [(chain, Head(int(number), digest)) for chain, number, digest in lines]


@dataclass(frozen=True, slots=True)
class Fault:
    """Where a chain is not as it was written; `str()` is a sentence for people."""

    chain: str
    number: int
    problem: str

    def __str__(self) -> str:
        return f"event {self.number} of chain {self.chain} {self.problem}"


def faults(
    events: Iterable[AuditEventRead], heads: dict[str, Head], known: Collection[tuple[str, Head]] = ()
) -> Iterator[Fault]:
    """What is wrong with events, which come chain by chain in order. `heads` is filled with where each chain ends.

    `known` is how far chains went at some time, as somebody else has kept it: a chain whose end was taken away has no
    other fault.
    """
    digests = {(chain, head.number): head.digest for chain, head in known}
    for event in events:
        before = heads.get(event.chain, START)
        expected = before.number + 1
        if event.number > expected:
            yield _missing(event.chain, expected, event.number - 1)
        elif event.number < expected:
            yield Fault(event.chain, event.number, "stands in the chain once more")
        elif digest_of(event, before.digest) != event.digest:
            yield Fault(event.chain, event.number, "is not what was written: its digest does not fit")
        elif digests.get((event.chain, event.number), event.digest) != event.digest:
            yield Fault(event.chain, event.number, "is not what it was known to be")
        heads[event.chain] = Head(event.number, event.digest)
    for chain, head in known:
        if (last := heads.get(chain, START).number) < head.number:
            yield _missing(chain, last + 1, head.number)


def _missing(chain: str, first: int, last: int) -> Fault:
    return Fault(chain, first, "is missing" if first == last else f"is missing, with all up to {last}")
