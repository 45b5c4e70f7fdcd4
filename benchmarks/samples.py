"""Made-up memories for both sides, the same for each."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.bulk import gather_statistics
from memsvc.format import Confidence, EntryDraft, MemoryCategory, MemoryEntry, render_document
from memsvc.testing import fresh_tree
from memsvc.tree import services
from memsvc.tree.access import Access
from tenants.actors import SYSTEM

FACTS = "/memory/semantic_memory/facts.md"
_BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
_WORDS = (
    "gateway",
    "invoice",
    "harbour",
    "lantern",
    "meadow",
    "orchard",
    "pepper",
    "quarry",
    "ribbon",
    "velvet",
)


def entry_id(number: int) -> str:
    return f"mem_2026-01-01_{number:016x}"


def body(number: int) -> str:
    """Some 400 characters with words that come up in many entries, and one that is its own."""
    words = [_WORDS[(number * 7 + i * i) % len(_WORDS)] for i in range(50)]
    return f"Observation ref-{number:05d}. " + " ".join(words) + "."


def entries(count: int) -> list[MemoryEntry]:
    return [
        MemoryEntry(
            entry_id=entry_id(number),
            created=_BEGINNING + timedelta(minutes=number),
            category=MemoryCategory.FACTS,
            body=body(number),
            summary=f"Observation {number}",
            source="benchmark",
            confidence=Confidence.MEDIUM,
            tags=("bench", f"group-{number % 9}"),
        )
        for number in range(count)
    ]


def facts_file(count: int) -> str:
    return render_document("# Facts", entries(count))


def draft(number: int, *, supersedes: str | None = None) -> EntryDraft:
    return EntryDraft(
        category=MemoryCategory.FACTS,
        body=body(number),
        summary=f"Observation {number}",
        tags=("bench", f"group-{number % 9}"),
        supersedes=supersedes,
    )


def our_tree(count: int) -> Access:
    """A new tree with `count` entries in facts.md."""
    access = Access(fresh_tree(), SYSTEM)
    services.scaffold(access)
    if count:
        services.write_file(access, FACTS, facts_file(count))
    gather_statistics()
    return access


@contextmanager
def peer_folder(count: int) -> Iterator[Path]:
    """The same as deep-memory-agent keeps it on disk."""
    from deep_memory_agent import MemoryStore, build_memory_backend

    with tempfile.TemporaryDirectory() as folder:
        MemoryStore(build_memory_backend(folder, for_deep_agent=False)).ensure_tree()
        if count:
            (Path(folder) / "semantic_memory/facts.md").write_text(facts_file(count))
        yield Path(folder)
