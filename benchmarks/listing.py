"""Listing: a folder of 1,000 files, against deepagents' backend on disk; pages of few and of 100,000 entries."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from deepagents.backends import FilesystemBackend
from django.db import connection

from benchmarks.bulk import gather_statistics
from benchmarks.measure import Figure, cpu_of_call, ratio_of
from benchmarks.samples import our_tree
from benchmarks.server import client_of, server_pids
from memsvc.database.rights import OWNER, connected_as
from memsvc.tree import reads, services
from memsvc.tree.access import Access
from memsvc.tree.cursors import cursor_of_entry
from memsvc.tree.models import Block

_FILES = [(f"/memory/notes/note-{n:04d}.md", f"# Note {n}\n".encode()) for n in range(1_000)]


FEW, MANY = 1_000, 100_000
_PAGE = 100


def run() -> Iterator[Figure]:
    yield from _folder()
    yield from _entries()


def _folder() -> Iterator[Figure]:
    access = our_tree(0)
    services.upload_files(access, _FILES)
    client = client_of(access.tree)
    with tempfile.TemporaryDirectory() as folder:
        for path, data in _FILES:
            target = Path(folder + path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        disk = FilesystemBackend(root_dir=folder, virtual_mode=True)
        peer = cpu_of_call(lambda i: disk.ls("/memory/notes"), times=5)
        ours = cpu_of_call(lambda i: reads.list_folder(access, "/memory/notes"), times=10)
        yield ratio_of("list a folder of 1,000 files", ours, peer)
        ours = cpu_of_call(lambda i: client.list_folder("/memory/notes"), times=10, servers=server_pids())
        yield ratio_of("list a folder of 1,000 files over HTTP", ours, peer)


def _entries() -> Iterator[Figure]:
    few, many = our_tree(FEW), our_tree(FEW)
    _multiply(many, MANY // FEW - 1)
    base = _cost_of_page(few, None)
    yield Figure(f"first page of {FEW:,} entries", f"{base:.2f} ms CPU")
    for where, place in (("first page", 0), ("page in the middle", MANY // 2), ("last page", MANY - _PAGE)):
        cost = _cost_of_page(many, _cursor(many, place) if place else None)
        yield Figure(
            f"{where} of {MANY:,} entries",
            f"{cost:.2f} ms CPU",
            ratio=f"{cost / base:.2f}×",
            bar=f"≤ 1.5× that of {FEW:,}",
            held=cost / base <= 1.5,
        )


def _cost_of_page(access: Access, cursor: str | None) -> float:
    assert len(reads.list_entries(access, cursor=cursor, limit=_PAGE).items) == _PAGE
    return cpu_of_call(lambda i: reads.list_entries(access, cursor=cursor, limit=_PAGE), times=20)


@connected_as(OWNER)
def _cursor(access: Access, place: int) -> str:
    """Where the page begins that has so many entries before it."""
    before = Block.objects.of(access.tree).entries().order_by("-created", "-pk")[place - 1]
    assert before.created is not None
    return cursor_of_entry(before.created, before.pk)


@connected_as(OWNER)
def _multiply(access: Access, times: int) -> None:
    """Put so many copies of each entry beside it, with ids and times of their own: much faster than to write them.

    They have nothing to search for, since the index of that takes longest and no listing looks at it.
    """
    own = ("id", "position", "entry_id", "created", "search_text")
    copied = ", ".join(field.attname for field in Block._meta.concrete_fields if field.attname not in own)
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = '600s'")
        cursor.execute(
            f"INSERT INTO tree_block (id, position, entry_id, created, search_text, {copied})"
            f" SELECT gen_random_uuid(), position + n, entry_id || '_' || n, created + n * interval '1 second', '',"
            f" {copied} FROM tree_block, generate_series(1, %s) AS n WHERE tree_id = %s AND kind = 'entry'",
            [times, access.tree.pk],
        )
        cursor.execute("RESET statement_timeout")
    gather_statistics()
