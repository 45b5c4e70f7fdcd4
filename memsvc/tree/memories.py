"""Changes of memories: files that are known by their id. Each function is one transaction and one revision.

Nothing is mended: a path that is not in its one form is refused. Raises `TreeError` and `FormatError`.
"""

from dataclasses import replace
from uuid import UUID

from memsvc.format import checked_text, composed_path
from memsvc.tree import files, reads
from memsvc.tree.access import Access
from memsvc.tree.commands import Precondition
from memsvc.tree.errors import (
    MemoryNotFound,
    MemoryPathConflict,
    MemoryPreconditionFailed,
    PreconditionFailed,
    TooLarge,
)
from memsvc.tree.history.memory_versions import MAX_CONTENT_BYTES
from memsvc.tree.models import File
from memsvc.tree.results import Memory
from memsvc.tree.scope import Change
from memsvc.tree.services import carry, close, filled, one_revision


def create_memory(access: Access, path: str, text: str) -> Memory:
    """A new memory at a path where none is, and none above or below. Raises `MemoryPathConflict`."""
    path, data = composed_path(path), _checked(text)
    access.require_write(path)
    with one_revision(access, "file.write") as change:
        _require_free(change, path)
        filled(change, path, None, data)
        made = reads.read_memory(access, files.require(change, path).pk)
        return replace(made, warnings=tuple(change.warnings))


def update_memory(
    access: Access,
    memory_id: UUID,
    *,
    path: str | None = None,
    text: str | None = None,
    sha256: str | None = None,
) -> Memory:
    """Give a memory another path, other content, or both at once; what is None stays.

    With `sha256`, only if its content has this hash: else `MemoryPreconditionFailed`, unless everything is as asked
    already, so that a request may be repeated whose answer was lost. Raises `MemoryNotFound` and
    `MemoryPathConflict`.
    """
    data = None if text is None else _checked(text)
    if path is not None:
        path = composed_path(path)
        access.require_write(path)
    with one_revision(access, "file.move" if text is None else "file.write") as change:
        file = _required(change, memory_id)
        if not _has(change, file, sha256):
            asked = path is not None or data is not None
            if not (asked and path in (None, file.path) and data in (None, files.content_now(change, file))):
                raise MemoryPreconditionFailed
        if path not in (None, file.path):
            _require_free(change, path, moving=file)
            carry(change, [file], [(file.path, path)])
        if data is not None:
            filled(change, file.path, file, data)
        return replace(reads.read_memory(access, memory_id), warnings=tuple(change.warnings))


def delete_memory(access: Access, memory_id: UUID, *, sha256: str | None = None) -> None:
    """Delete a memory; its versions stay. Raises `MemoryNotFound` and `MemoryPreconditionFailed`."""
    with one_revision(access, "file.delete") as change:
        file = _required(change, memory_id)
        if not _has(change, file, sha256):
            raise MemoryPreconditionFailed
        close(change, [file])


def _checked(text: str) -> bytes:
    data = checked_text(text, field="content", max_bytes=files.MAX_FILE_BYTES, nul_allowed=True).encode()
    if len(data) > MAX_CONTENT_BYTES:
        raise TooLarge(
            f"content has {len(data):,} bytes; a memory takes {MAX_CONTENT_BYTES:,}: cut it in two"
        )
    return data


def _required(change: Change, memory_id: UUID) -> File:
    file = File.objects.of(change.tree).live_at(None).filter(pk=memory_id).first()
    if file is None or not change.access.sees(file.path) or files.is_hidden(change, file):
        raise MemoryNotFound
    return file


def _has(change: Change, file: File, sha256: str | None) -> bool:
    """Whether a memory's content has the hash that is expected; any will do where none is."""
    try:
        files.check(change, file, Precondition(if_match=sha256) if sha256 else None, file.path)
    except PreconditionFailed:
        return False
    return True


def _require_free(change: Change, path: str, *, moving: File | None = None) -> None:
    """Raise unless a memory may be at a path; files in the way of which nothing shows any more are closed."""
    there = files.in_the_way(change, path, moving=moving)
    if there is not None:
        seen = change.access.sees(there.path)
        raise MemoryPathConflict(
            path, conflicting_id=there.pk if seen else None, conflicting_path=there.path if seen else ""
        )
