"""Reading, comparing and listing what was, in trees of 10,000 revisions, beside reading what is."""

import re
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from datetime import UTC, datetime, timedelta

from benchmarks.bulk import gather_statistics
from benchmarks.measure import Figure, cpu_of_call
from benchmarks.samples import facts_file, our_tree
from memsvc.database.ids import uuid7
from memsvc.database.rights import OWNER, connected_as
from memsvc.tree import reads, services, statements
from memsvc.tree.access import Access
from memsvc.tree.models import Block, File, Revision, Tree

REVISIONS = 10_000
_ENTRIES = 100
_TIMES = 20


def run() -> Iterator[Figure]:
    yield from _figures(_tree_of(files=100), "100 files")
    yield from _figures(_tree_of(files=1), "one file")


def _figures(access: Access, where: str) -> Iterator[Figure]:
    path, middle = _path(0), REVISIONS // 2
    reading: dict[str, tuple[Callable[[int], object], Callable[[int], object]]] = {
        "read a file": (
            lambda i: reads.read_file(access, path),
            lambda i: reads.read_file(access, path, revision=middle + i),
        ),
        "read a page": (
            lambda i: reads.read_lines(access, path, limit=50),
            lambda i: reads.read_lines(access, path, limit=50, revision=middle + i),
        ),
        "diff of a file": (
            lambda i: reads.read_file(access, path),
            lambda i: reads.diff(access, middle + i, middle + 100 + i, path=path),
        ),
        "diff of the tree": (
            lambda i: reads.read_file(access, path),
            lambda i: reads.diff(access, middle + i, middle + 1 + i),
        ),
    }
    for name, (current, earlier) in reading.items():
        now = cpu_of_call(current, times=_TIMES)
        then = cpu_of_call(earlier, times=_TIMES)
        yield Figure(
            f"{name} at {REVISIONS:,} revisions of {where}",
            f"{then:.2f} ms CPU",
            f"{now:.2f} ms CPU (current read)",
            f"{then / now:.2f}×",
            "≤ 3×",
            then / now <= 3,
        )


def _path(number: int) -> str:
    return f"/memory/notes/part-{number:03d}.md"


@connected_as(OWNER)
def _tree_of(files: int) -> Access:
    """A tree in which each revision changed another of the 100 entries of one of so many files.

    Only the first revision is made by a service; the others are written as rows, which is much faster.
    """
    access = our_tree(0)
    services.import_files(access, [(_path(n), _part(n)) for n in range(files)])
    tree = Tree.objects.get(pk=access.tree.pk)
    standing = {n: list(Block.objects.of_file(_file(tree, n)).entries()) for n in range(files)}
    first, made = tree.revision + 1, []
    originals = [row for rows in standing.values() for row in rows]
    for number in range(first, first + REVISIONS):
        rows, slot = standing[number % files], number // files % _ENTRIES
        old, new = rows[slot], _another(rows[slot], number)
        old.removed_in = number
        rows[slot] = new
        made.append(new)
    Block.objects.bulk_update(originals, ["removed_in"], batch_size=1000)
    statements.insert_blocks(made, language=tree.language)
    _record(tree, range(first, first + REVISIONS))
    gather_statistics()
    return access


def _file(tree: Tree, number: int) -> File:
    return File.objects.of(tree).get(path=_path(number))


def _part(number: int) -> bytes:
    """Entries with ids of their own."""
    return facts_file(_ENTRIES).replace("mem_2026", f"mem_{number:03d}_2026").encode()


def _another(row: Block, number: int) -> Block:
    """What an edit of one word makes of an entry."""
    new = copy(row)
    new.pk, new.added_in, new.removed_in = uuid7(), number, None
    new.text = re.sub(r"ref-\d{5}", f"ref-{number:05d}", new.text, count=1)
    new.search_text = re.sub(r"ref-\d{5}", f"ref-{number:05d}", new.search_text, count=1)
    return new


def _record(tree: Tree, numbers: Sequence[int]) -> None:
    beginning = datetime(2026, 1, 1, tzinfo=UTC)
    Revision.objects.bulk_create(
        [
            Revision(
                tenant_id=tree.tenant_id,
                tree_id=tree.pk,
                number=number,
                at=beginning + timedelta(minutes=number),
                actor_kind="system",
                actor_id="system",
                actor_name="memsvc",
                action="file.edit",
            )
            for number in numbers
        ],
        batch_size=1000,
    )
    Tree.objects.filter(pk=tree.pk).update(revision=numbers[-1])
    File.objects.of(tree).filter(path__startswith="/memory/notes/").update(changed_in=numbers[-1], sha256="")
