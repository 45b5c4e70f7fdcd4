"""How two revisions of a tree differ, file by file, and line by line where that can be told."""

import hashlib
from collections.abc import Sequence
from uuid import UUID

from memsvc.contract.history import FileChange, FileDiff, Hunk
from memsvc.format import canonical_folder
from memsvc.tree.access import Access
from memsvc.tree.blocks import content
from memsvc.tree.differences import Range, differences, lines_of
from memsvc.tree.errors import FileNotFound, TooLarge
from memsvc.tree.files import decodes
from memsvc.tree.history.timeline import Places, held, touched
from memsvc.tree.models import File
from memsvc.tree.snapshot import Snapshot, snapshot

MAX_FILES_COMPARED = 1000
CONTEXT_LINES = 3

type _Place = tuple[UUID, str] | None


def diff(access: Access, old: int, new: int | None = None, *, path: str | None = None) -> list[FileDiff]:
    """How each file differs between two revisions (`new=None` is now), or those at and below `path`.

    A file that was moved is compared with itself, one that was deleted and made again with what stands at its path.
    Raises `RevisionNotFound`, `RevisionPruned`, `FileNotFound` for a path at which nothing stood in either, and
    `TooLarge` for more than 1,000 files.
    """
    folder = canonical_folder(path)
    with snapshot(access) as now:
        tree = now.tree
        new = tree.revision if new is None else new
        for number in (old, new):
            tree.require_revision(number)
        if folder == "/":
            places = Places(now, _touched_between(now, old, new))
            before, after = places.at(old), places.at(new)
        else:
            before, after = _places_below(now, folder, old, new)
        pairs = _paired(before, after)
        if len(pairs) > MAX_FILES_COMPARED:
            raise TooLarge(
                f"{len(pairs)} files differ; one answer takes {MAX_FILES_COMPARED}: ask for a folder, or for "
                "revisions that lie closer to each other"
            )
        diffs = [_file_diff(now, was, is_now, old, new) for was, is_now in pairs]
    return sorted((each for each in diffs if each), key=lambda each: (each.path, each.action))


def _touched_between(now: Snapshot, old: int, new: int) -> set[UUID]:
    numbers = range(min(old, new) + 1, max(old, new) + 1)
    return {file_id for _, file_id in touched(now.access.tree, numbers, counting=now.visible)}


def _places_below(now: Snapshot, folder: str, old: int, new: int) -> tuple[dict[UUID, str], dict[UUID, str]]:
    """The places of files that may differ and stood at or below a path in either revision."""
    files = File.objects.of(now.access.tree)
    live = (files.live_at(old) | files.live_at(new)).at_or_below(folder)
    places = Places(now, {file.content_id for file in live})
    before, after = places.at(old), places.at(new)
    ids = {
        file_id
        for file_id, path in [*before.items(), *after.items()]
        if path == folder or path.startswith(folder + "/")
    }
    if not ids:
        raise FileNotFound(folder)
    # One file is compared in less time than it takes to find out whether it was touched.
    wanted = ids if len(ids) == 1 else ids & _touched_between(now, old, new)
    return (
        {file_id: path for file_id, path in before.items() if file_id in wanted},
        {file_id: path for file_id, path in after.items() if file_id in wanted},
    )


def file_change(before: str | None, after: str | None) -> FileChange | None:
    """What became of a file that stood at one path and stands at another; None where it is at neither."""
    if before is None or after is None:
        path = after or before
        return FileChange(path, "created" if after else "deleted") if path else None
    if before != after:
        return FileChange(after, "moved", source=before)
    return FileChange(after, "changed")


def _paired(before: dict[UUID, str], after: dict[UUID, str]) -> list[tuple[_Place, _Place]]:
    """What each file was and has become: the same file, or another one at the same path."""
    pairs: list[tuple[_Place, _Place]] = [
        ((file_id, before[file_id]), (file_id, after[file_id])) for file_id in before.keys() & after.keys()
    ]
    gone = {path: file_id for file_id, path in before.items() if file_id not in after}
    for file_id, path in after.items():
        if file_id not in before:
            was = (gone.pop(path), path) if path in gone else None
            pairs.append((was, (file_id, path)))
    return [*pairs, *(((file_id, path), None) for path, file_id in gone.items())]


def _file_diff(now: Snapshot, was: _Place, is_now: _Place, old: int, new: int) -> FileDiff | None:
    before, after = was[1] if was else None, is_now[1] if is_now else None
    change = file_change(before, after)
    in_old, in_new = held(now, {file_id for file_id, _ in filter(None, (was, is_now))}, old, new)
    old_data = content(in_old[was[0]], old) if was else b""
    new_data = content(in_new[is_now[0]], new) if is_now else b""
    if change is None or (change.action == "changed" and old_data == new_data):
        return None
    is_text = decodes(old_data) and decodes(new_data)
    hunks = _hunks(_text_lines(old_data), _text_lines(new_data)) if is_text else []
    return FileDiff(
        path=change.path,
        action=change.action,
        source=change.source,
        unified=_unified(before, after, hunks) if is_text else _binary(before, after),
        hunks=hunks,
        old_sha256=hashlib.sha256(old_data).hexdigest() if was else None,
        new_sha256=hashlib.sha256(new_data).hexdigest() if is_now else None,
    )


def _text_lines(data: bytes) -> list[str]:
    return [line.decode() for line in lines_of(data)]


def _hunks(old: Sequence[str], new: Sequence[str]) -> list[Hunk]:
    groups: list[list[Range]] = []
    for found in differences(old, new):
        if groups and found[0] - groups[-1][-1][1] <= 2 * CONTEXT_LINES:
            groups[-1].append(found)
        else:
            groups.append([found])
    return [_hunk(old, new, group) for group in groups]


def _hunk(old: Sequence[str], new: Sequence[str], group: Sequence[Range]) -> Hunk:
    before = min(CONTEXT_LINES, group[0][0])
    behind = min(CONTEXT_LINES, len(old) - group[-1][1])
    start, done = group[0][0] - before, group[0][0] - before
    lines: list[str] = []
    for i1, i2, j1, j2 in group:
        lines += [" " + line for line in old[done:i1]]
        lines += ["-" + line for line in old[i1:i2]] + ["+" + line for line in new[j1:j2]]
        done = i2
    lines += [" " + line for line in old[done : done + behind]]
    old_lines = done + behind - start
    new_start, new_lines = group[0][2] - before, group[-1][3] + behind - (group[0][2] - before)
    # As in a unified diff: the start of an empty range is the line before it.
    return Hunk(start + bool(old_lines), old_lines, new_start + bool(new_lines), new_lines, lines)


def _unified(before: str | None, after: str | None, hunks: Sequence[Hunk]) -> str:
    parts = [_git_header(before, after)]
    if hunks:
        parts.append(f"--- {_git_name('a', before)}\n+++ {_git_name('b', after)}\n")
    for hunk in hunks:
        parts.append(f"@@ -{hunk.old_start},{hunk.old_lines} +{hunk.new_start},{hunk.new_lines} @@\n")
        parts += [
            line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in hunk.lines
        ]
    return "".join(parts)


def _binary(before: str | None, after: str | None) -> str:
    names = f"{_git_name('a', before)} and {_git_name('b', after)}"
    return f"{_git_header(before, after)}Binary files {names} differ\n"


def _git_header(before: str | None, after: str | None) -> str:
    """What git needs to apply a file that is empty, comes, goes or moves."""
    header = f"diff --git {_git_name('a', before or after)} {_git_name('b', after or before)}\n"
    if before is None:
        return header + "new file mode 100644\n"
    if after is None:
        return header + "deleted file mode 100644\n"
    if before != after:
        header += f"rename from {_quoted(before[1:])}\nrename to {_quoted(after[1:])}\n"
    return header


def _git_name(side: str, path: str | None) -> str:
    return "/dev/null" if path is None else _quoted(side + path)


def _quoted(name: str) -> str:
    """A name as git writes it: in quotes where it holds one, or a backslash."""
    if '"' in name or "\\" in name:
        name = name.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{name}"'
    return name
