"""Files: listings, whole contents, windows of lines, and router indexes as rows."""

import hashlib
from base64 import b64encode
from bisect import bisect_right
from itertools import accumulate

from memsvc.contract.entries import RouterIndex
from memsvc.contract.files import Listed, Page, Window
from memsvc.format import (
    MemoryKind,
    canonical_folder,
    canonical_path,
    index_path,
    parent_of,
    parse_index,
    plain_line_ends,
    text_lines,
)
from memsvc.tree.access import Access
from memsvc.tree.blocks import content
from memsvc.tree.cursors import after_text, cursor_of_text
from memsvc.tree.errors import FileNotFound, FolderNotFound, IsFolder, NotFolder, OffsetBeyondEnd
from memsvc.tree.files import MAX_FILE_BYTES, decodes, etag_of, rendered_lines, version_tag
from memsvc.tree.models import Block, File
from memsvc.tree.results import FileContent
from memsvc.tree.snapshot import Snapshot, snapshot

MAX_LISTED = 1000
# More than any file has; what asks for more is not counted further.
_MAX_LINES = MAX_FILE_BYTES + 1


def list_folder(access: Access, folder: str | None, *, revision: int | None = None) -> list[Listed]:
    """The files and folders right below a folder, in code-point order of their paths with a folder's slash.

    The root, and the access's own prefix, always list. Raises `FolderNotFound` and `NotFolder`.
    """
    folder = canonical_folder(folder)
    with snapshot(access, revision) as now:
        below = now.files().under(folder)
        files = now.listed(list(below.filter(parent=folder)))
        found = files + _folders(now, folder)
        if not found and folder not in ("/", access.prefix):
            raise NotFolder(folder) if now.has_file(folder) else FolderNotFound(folder)
    return sorted(found, key=lambda each: each.path + "/" * each.is_dir)


def _folders(now: Snapshot, folder: str) -> list[Listed]:
    deeper = now.files().under(folder).exclude(parent=folder).order_by()
    parents = set(deeper.filter(next_expiry__isnull=True).values_list("parent", flat=True).distinct())
    # A folder whose files are all hidden is hidden with them.
    parents |= {parent_of(each.path) for each in now.listed(list(deeper.filter(next_expiry__isnull=False)))}
    base = folder.rstrip("/")
    names = {parent.removeprefix(base + "/").split("/", 1)[0] for parent in parents}
    return [Listed(path=f"{base}/{name}", is_dir=True) for name in names]


def list_files(
    access: Access,
    prefix: str | None = "/",
    *,
    after: str | None = None,
    limit: int = MAX_LISTED,
    revision: int | None = None,
) -> Page[Listed]:
    """All files below a folder (or the one file), in path order, up to `limit` (at most 1,000) a page."""
    folder = canonical_folder(prefix)
    limit = max(1, min(limit, MAX_LISTED))
    with snapshot(access, revision) as now:
        files = now.files().at_or_below(folder)
        if after is not None:
            files = files.filter(path__gt=after_text(after))
        rows = list(files.order_by("path")[: limit + 1])
        page = rows[:limit]
        return Page(items=now.listed(page), next=cursor_of_text(page[-1].path) if len(rows) > limit else None)


def stat(access: Access, path: str, *, revision: int | None = None) -> Listed:
    """Describe a file. Raises `FileNotFound` and `IsFolder`."""
    path = canonical_path(path)
    with snapshot(access, revision) as now:
        return _file(now, path)[1]


def _file(now: Snapshot, path: str) -> tuple[File, Listed]:
    try:
        return now.file(path)
    except FileNotFound:
        if any(now.listed([file]) for file in now.files().under(path).iterator()):
            raise IsFolder(path) from None
        raise


def read_file(access: Access, path: str, *, revision: int | None = None) -> FileContent:
    """A whole file, byte for byte. Raises `FileNotFound` and `IsFolder`."""
    path = canonical_path(path)
    with snapshot(access, revision) as now:
        file, listed = _file(now, path)
        data = content(now.blocks_of(file), revision)
    sha256 = hashlib.sha256(data).hexdigest()
    return FileContent(
        path=path,
        data=data,
        is_text=decodes(data),
        created_at=file.created_at,
        modified_at=listed.modified_at or file.modified_at,
        revision=listed.revision,
        sha256=sha256,
        etag=sha256,
    )


def _is_text(now: Snapshot, file: File) -> bool:
    """Whether the content decodes; a file may have been something else in an earlier revision."""
    if now.revision is None:
        return file.is_text
    blocks = now.blocks_of(file)
    return not blocks.filter(raw__isnull=False).exists() or decodes(content(blocks, now.revision))


def _etag(now: Snapshot, file: File, listed: Listed) -> str:
    if now.revision is None and file.next_expiry is None:
        return etag_of(file)
    return version_tag(file, revision=listed.revision, size=listed.size)


def read_lines(
    access: Access, path: str, *, offset: int = 0, limit: int = 2000, revision: int | None = None
) -> Window:
    """A window of a text file: `limit` lines from the 0-based line `offset` on, line ends as `\\n`.

    Blank content comes whole, whatever the bounds; content that is no text comes whole as bytes. A negative
    offset is 0, and a limit below 1 asks for no lines. Only the blocks of the window are read. Raises
    `FileNotFound` (also for a folder) and `OffsetBeyondEnd`.
    """
    path = canonical_path(path)
    wanted, limit = max(offset, 0), min(max(limit, 0), _MAX_LINES)
    offset = min(wanted, _MAX_LINES)
    with snapshot(access, revision) as now:
        file, listed = now.file(path)
        etag = _etag(now, file, listed)
        if not _is_text(now, file):
            return _page(file, listed, etag, binary=content(now.blocks_of(file), revision))
        skipped, rows = _blocks_of_window(now, file, offset, limit)
        window = content(rows, revision).decode()
        if _is_blank(window):
            whole = content(now.blocks_of(file), revision).decode()
            if _is_blank(whole):
                return _page(file, listed, etag, text=whole)
    if limit == 0:
        return _page(file, listed, etag, no_lines_requested=True)
    if offset >= listed.lines:
        raise OffsetBeyondEnd(wanted, listed.lines)
    lines = text_lines(window, ends=True)[offset - skipped :][:limit]
    return _page(file, listed, etag, text=plain_line_ends("".join(lines)), start=offset, count=len(lines))


def _blocks_of_window(now: Snapshot, file: File, offset: int, limit: int) -> tuple[int, list[Block]]:
    """The blocks that hold lines offset to offset + limit, and how many lines stand before the first of them."""
    # What was redacted has no line.
    blocks = now.blocks_of(file).filter(size__gt=0)
    # Every other block has one, but for a byte order mark, so the window lies in the first offset + limit + 1 blocks.
    counts = blocks.annotate(shown=rendered_lines(now.revision)).values_list("position", "shown")
    places = list(counts[: offset + max(limit, 1) + 1])
    if not places:
        return 0, []
    ends = list(accumulate(lines for _, lines in places))
    first = bisect_right(ends, offset) if offset else 0
    last = bisect_right(ends, offset + max(limit, 1) - 1)
    skipped = ends[first - 1] if first else 0
    chosen = places[first : last + 1]
    if not chosen:
        return skipped, []
    return skipped, list(blocks.filter(position__gte=chosen[0][0], position__lte=chosen[-1][0]))


def _is_blank(text: str) -> bool:
    return not text.removeprefix("\ufeff").strip()


def _page(
    file: File,
    listed: Listed,
    etag: str,
    *,
    text: str = "",
    binary: bytes | None = None,
    start: int | None = None,
    count: int = 0,
    no_lines_requested: bool = False,
) -> Window:
    end = None if start is None else start + count
    return Window(
        path=file.path,
        content=text if binary is None else b64encode(binary).decode("ascii"),
        encoding="utf-8" if binary is None else "base64",
        total_lines=None if start is None else listed.lines,
        start_line=None if start is None else start + 1,
        end_line=end,
        next_offset=end if end is not None and end < listed.lines else None,
        no_lines_requested=no_lines_requested,
        size=listed.size,
        created_at=file.created_at,
        modified_at=listed.modified_at or file.modified_at,
        revision=listed.revision,
        etag=etag,
    )


def read_index(access: Access, kind: MemoryKind | None = None, *, revision: int | None = None) -> RouterIndex:
    """The router index of a kind, or the root's, as rows in path order."""
    path = index_path(kind)
    try:
        data = read_file(access, path, revision=revision).data
    except FileNotFound:
        return RouterIndex(path=path, rows=[], preamble="", exists=False)
    preamble, rows = parse_index(data.decode(errors="replace"))
    return RouterIndex(path=path, rows=[rows[key] for key in sorted(rows)], preamble=preamble, exists=True)
