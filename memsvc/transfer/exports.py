"""A tree as a zip archive or a directory, every file byte for byte with a manifest beside them, or as JSON Lines."""

import zipfile
from collections import Counter
from collections.abc import Generator
from contextlib import ExitStack
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Final, Self

from memsvc.database.tenancy import tenant_transaction
from memsvc.format import cut_file
from memsvc.transfer.external_memories import memory_of
from memsvc.transfer.interchange import document_line, header_line, memory_line
from memsvc.transfer.manifest import Manifest
from memsvc.transfer.names import MANIFEST_NAME, ArchiveNames
from memsvc.transfer.reports import Progress
from memsvc.tree.access import Access
from memsvc.tree.models import Tree
from memsvc.tree.reads import ExportSource, export_source
from tenants import audit
from tenants.models import Tenant

_PIECE_BYTES: Final = 64 * 1024
_OLDEST_ZIP_TIME: Final = datetime(1980, 1, 1, tzinfo=UTC)
_REGULAR_FILE: Final = 0o100644
# Of what is written, so that an export doesn't change with every release.
_VERSION: Final = "1"


class Export:
    """A tree as of a revision as bytes in pieces, in constant memory.

    The same revision always gives the same bytes. Iterate it once; close it when it isn't read to the end.
    """

    def __init__(self, held: ExitStack, pieces: Generator[bytes]) -> None:
        self._held = held
        self._pieces = pieces

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> bytes:
        try:
            return next(self._pieces)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of what the pieces are made of."""
        self._pieces.close()
        self._held.close()


def record_export(access: Access, revision: int | None) -> None:
    """That a tree is taken away, in the audit of its tenant, before the first byte goes.

    Raises `RevisionNotFound` and `RevisionPruned`.
    """
    tree = access.tree
    if revision is not None:
        tree.require_revision(revision)
    with tenant_transaction(tree.tenant_id):
        tenant = Tenant(pk=tree.tenant_id)
        audit.record(access.actor, "tree.export", tenant, tree_id=tree.pk, revision=revision)


def export_zip(
    access: Access, revision: int | None = None, *, progress: Progress = lambda path: None
) -> Export:
    """Begin the zip archive of what `access` sees. Raises RevisionNotFound here, before the first byte."""
    held = ExitStack()
    taken = held.enter_context(export_source(access, revision=revision))
    return Export(held, _zip_pieces(taken, access.tree, progress))


def export_jsonl(
    access: Access, revision: int | None = None, *, progress: Progress = lambda path: None
) -> Export:
    """Begin the JSON Lines of what `access` sees: each file, and behind it its entries. Raises RevisionNotFound here.

    Not in it are the history, the times of files, and vectors.
    """
    held = ExitStack()
    taken = held.enter_context(export_source(access, revision=revision))
    return Export(held, _lines(taken, access.tree.name, progress))


def export_directory(
    access: Access, target: Path, revision: int | None = None, *, progress: Progress = lambda path: None
) -> int:
    """Write what `access` sees into a directory that is new or empty; answers the number of files.

    Raises FileExistsError when there is something in it: an export is a copy of the tree and nothing besides.
    """
    target.mkdir(parents=True, exist_ok=True)
    if any(target.iterdir()):
        raise FileExistsError(f"{target} is not empty")
    with export_source(access, revision=revision) as taken:
        names, manifest = ArchiveNames(), Manifest(access.tree.name, access.tree.pk, taken.revision, taken.at)
        expiring = taken.expiries()
        manifest.lost = expiring.lost
        for listed, chunks in taken.files():
            name = names.name_for(listed.path)
            file = target / name
            file.parent.mkdir(parents=True, exist_ok=True)
            digest = sha256()
            with file.open("xb") as sink:
                for chunk in chunks:
                    digest.update(chunk)
                    sink.write(chunk)
            manifest.files[name] = digest.hexdigest()
            if listed.path in expiring.by_path:
                manifest.expiries[name] = expiring.by_path[listed.path]
            progress(listed.path)
        manifest.renamed = names.renamed
        (target / MANIFEST_NAME).write_bytes(manifest.to_bytes())
    return len(manifest.files)


def expiring(access: Access) -> int:
    """How many blocks of a tree disappear by themselves one day, which not every export can say."""
    with export_source(access) as taken:
        found = taken.expiries()
    return found.lost + sum(map(len, found.by_path.values()))


def _zip_pieces(taken: ExportSource, tree: Tree, progress: Progress) -> Generator[bytes]:
    sink = _Sink()
    names, manifest = ArchiveNames(), Manifest(tree.name, tree.pk, taken.revision, taken.at)
    expiring = taken.expiries()
    manifest.lost = expiring.lost
    with zipfile.ZipFile(sink, "w") as archive:
        for listed, chunks in taken.files():
            name = names.name_for(listed.path)
            digest = sha256()
            with archive.open(_member(name, taken.at), "w") as member:
                yield sink.taken()
                for chunk in chunks:
                    digest.update(chunk)
                    member.write(chunk)
                    if sink.size >= _PIECE_BYTES:
                        yield sink.taken()
            manifest.files[name] = digest.hexdigest()
            if listed.path in expiring.by_path:
                manifest.expiries[name] = expiring.by_path[listed.path]
            progress(listed.path)
        manifest.renamed = names.renamed
        archive.writestr(_member(MANIFEST_NAME, taken.at), manifest.to_bytes())
    yield sink.taken()


def _lines(taken: ExportSource, tree: str, progress: Progress) -> Generator[bytes]:
    yield header_line("memsvc", _VERSION)
    expiring = taken.expiries()
    for listed, chunks in taken.files():
        data = b"".join(chunks)
        yield document_line(tree, listed.path, data)
        expiries, above = expiring.by_path.get(listed.path, {}), Counter[str]()
        for block in cut_file(listed.path, data):
            if block.entry is not None:
                entry_id = block.entry.entry_id
                expires_at = expiries.get((entry_id, above[entry_id]))
                above[entry_id] += 1
                yield memory_line(tree, memory_of(block, listed.path, expires_at))
        progress(listed.path)


class _Sink:
    """Takes what the archive writes, until it is fetched."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    @property
    def size(self) -> int:
        return len(self._buffer)

    def write(self, data: bytes) -> int:
        self._buffer += data
        return len(data)

    def flush(self) -> None:
        """Nothing stands behind this buffer."""

    def close(self) -> None:
        """There is nothing to close."""

    def taken(self) -> bytes:
        data = bytes(self._buffer)
        self._buffer.clear()
        return data


def _member(name: str, at: datetime) -> zipfile.ZipInfo:
    """A member with the time of the revision, so that nothing in the archive depends on when it was made."""
    member = zipfile.ZipInfo(name, max(at.astimezone(UTC), _OLDEST_ZIP_TIME).timetuple()[:6])
    member.compress_type = zipfile.ZIP_DEFLATED
    member.create_system = 3  # Unix: the attributes are its file mode
    member.external_attr = _REGULAR_FILE << 16
    return member
