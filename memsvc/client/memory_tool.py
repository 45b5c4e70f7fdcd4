"""The six commands of the model-side memory tool (`memory_20250818`), carried out on a tree.

    tool = MemoryTool(client)
    answer = tool.run({"command": "view", "path": "/memories"})
    answer.text, answer.is_error

The model's `/memories` is one folder of the tree, `/memory` unless another root is named; nothing else can be
reached. A refusal is an answer too: a sentence that says what to do next, never an exception.
"""

import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from memsvc.client.errors import Conflict, MemsvcError, NotFound, PreconditionFailed
from memsvc.client.http import MemsvcClient
from memsvc.client.records import Told
from memsvc.contract.errors import ErrorCode
from memsvc.contract.files import warnings_text
from memsvc.format import count_lines, dominant_newline, places_of, plain_line_ends, text_lines
from memsvc.format.refusals import sendable

MEMORIES: Final = "/memories"
MAX_LINES: Final = 999_999
MAX_SHOWN_CHARACTERS: Final = 100_000
SNIPPET_LINES: Final = 4
LEVELS: Final = 2
_ATTEMPTS: Final = 3


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What the model gets to read; `is_error` marks a tool result that reports a refusal."""

    text: str
    is_error: bool = False


class _Refused(Exception):
    """A command that can't be carried out, in words for the model."""


class MemoryTool:
    """The memory tool on the tree of a client. Each command that changes something makes one revision."""

    def __init__(self, client: MemsvcClient, *, root: str = "/memory") -> None:
        self._client: Final = client
        self._root: Final = root.rstrip("/")
        self._commands: Final[Mapping[str, Callable[[Mapping[str, object]], str]]] = {
            "view": self._view,
            "create": self._create,
            "str_replace": self._str_replace,
            "insert": self._insert,
            "delete": self._delete,
            "rename": self._rename,
        }

    def run(self, command: Mapping[str, object]) -> ToolAnswer:
        """Carry out one command as the model gave it."""
        name = command.get("command")
        carry_out = self._commands.get(name) if isinstance(name, str) else None
        try:
            if carry_out is None:
                raise _Refused(f"Unknown command {name!r}. Use one of: {', '.join(self._commands)}.")
            return ToolAnswer(carry_out(command))
        except _Refused as refusal:
            return ToolAnswer(sendable(f"Error: {refusal}"), is_error=True)
        except MemsvcError as error:
            return ToolAnswer(sendable(f"Error: {self._for_the_model(error.detail)}"), is_error=True)

    # Commands

    def _view(self, command: Mapping[str, object]) -> str:
        path = _path(command, "path")
        try:
            text, _ = self._read(path)
        except Conflict as error:
            if error.code != ErrorCode.IS_DIRECTORY:
                raise
            return self._listing(path)
        except NotFound:
            if path == MEMORIES:
                return self._listing(path)
            raise _missing(path) from None
        lines = text_lines(text)
        if len(lines) > MAX_LINES:
            raise _Refused(f"File {path} exceeds maximum line limit of {MAX_LINES:,} lines.")
        first, last = _view_range(command, len(lines))
        return f"Here's the content of {path} with line numbers:\n{_numbered(lines, first, last)}"

    def _listing(self, folder: str) -> str:
        sizes: dict[str, int] = {}
        total = 0
        for file in self._client.iter_files(self._in_tree(folder)):
            below = file.path.removeprefix(self._in_tree(folder)).lstrip("/").split("/")
            total += file.size
            if any(name.startswith(".") for name in below[:LEVELS]):
                continue
            for level in range(1, min(len(below), LEVELS) + 1):
                name = "/".join(below[:level]) + ("/" if level < len(below) else "")
                sizes[name] = sizes.get(name, 0) + file.size
        rows = [f"{_size(total)}\t{folder}/"]
        rows += [f"{_size(sizes[name])}\t{folder}/{name}" for name in sorted(sizes)]
        head = f"Here're the files and directories up to {LEVELS} levels deep in {folder}, excluding hidden items:"
        return "\n".join([head, *rows])

    def _create(self, command: Mapping[str, object]) -> str:
        path, text = _path_below(command, "path"), _text(command, "file_text")
        try:
            written = self._client.write_file(self._in_tree(path), text, create_only=True)
        except PreconditionFailed:
            raise _Refused(
                f"File {path} already exists. Change it with str_replace or insert, or delete it first."
            ) from None
        return f"File created successfully at: {path}{_told(written)}"

    def _str_replace(self, command: Mapping[str, object]) -> str:
        path = _path_below(command, "path")
        old, new = _text(command, "old_str"), _text(command, "new_str", default="")
        if not old:
            raise _Refused("`old_str` is empty. Give the exact text to replace.")

        def replaced(text: str) -> tuple[str, int]:
            places = places_of(text, old)
            if not places:
                raise _Refused(
                    f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}. "
                    "View the file and copy the text exactly."
                )
            if len(places) > 1:
                lines = ", ".join(str(_line_at(text, start)) for start, _ in places)
                raise _Refused(
                    f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {lines}. "
                    "Please ensure it is unique."
                )
            ((start, end),) = places
            return text[:start] + _in_line_ends_of(text, new) + text[end:], _line_at(text, start)

        text, line, told = self._changed(path, replaced)
        last = line + _line_at(new, len(new)) - 1 + SNIPPET_LINES
        snippet = _numbered(text_lines(text), max(1, line - SNIPPET_LINES), last)
        edited = f"The memory file has been edited. Here's a snippet of {path} with line numbers:\n{snippet}"
        return edited + told

    def _insert(self, command: Mapping[str, object]) -> str:
        path, added = _path_below(command, "path"), _text(command, "insert_text")
        after = _number(command.get("insert_line"), "insert_line")

        def inserted(text: str) -> tuple[str, int]:
            lines = text_lines(text, ends=True)
            if not 0 <= after <= len(lines):
                raise _Refused(
                    f"Invalid `insert_line` parameter: {after}. It should be within the range of lines of the "
                    f"file: [0, {len(lines)}]."
                )
            above, below = "".join(lines[:after]), "".join(lines[after:])
            return _joined(above, _in_line_ends_of(text, added), below), after

        _, _, told = self._changed(path, inserted)
        return f"The file {path} has been edited.{told}"

    def _delete(self, command: Mapping[str, object]) -> str:
        path = _path_below(command, "path")
        try:
            self._client.delete(self._in_tree(path), recursive=True)
        except NotFound:
            raise _missing(path) from None
        return f"Successfully deleted {path}"

    def _rename(self, command: Mapping[str, object]) -> str:
        old, new = _path_below(command, "old_path"), _path_below(command, "new_path")
        try:
            moved = self._client.move(self._in_tree(old), self._in_tree(new))
        except NotFound:
            raise _missing(old) from None
        except Conflict as error:
            if error.code not in (ErrorCode.PATH_TAKEN, ErrorCode.IS_DIRECTORY):
                raise
            raise _Refused(
                f"The destination {new} already exists. Choose another path, or delete it first."
            ) from None
        return f"Successfully renamed {old} to {new}{_told(moved)}"

    # Files

    def _changed(self, path: str, change: Callable[[str], tuple[str, int]]) -> tuple[str, int, str]:
        """Write what `change` makes of a file's text, unless somebody else wrote it meanwhile: then once more.

        The third part of the answer is what the model has to know of what it wrote.
        """
        for _ in range(_ATTEMPTS):
            try:
                text, etag = self._read(path)
            except NotFound:
                raise _missing(path) from None
            except Conflict as error:
                if error.code != ErrorCode.IS_DIRECTORY:
                    raise
                raise _Refused(f"The path {path} is a directory. Name a file in it.") from None
            new, line = change(text)
            try:
                written = self._client.write_file(self._in_tree(path), new, if_match=etag)
            except PreconditionFailed:
                continue
            return new, line, _told(written)
        raise _Refused(f"{path} is being changed by others right now. View it, and try again.")

    def _read(self, path: str) -> tuple[str, str | None]:
        found = self._client.read_bytes(self._in_tree(path))
        try:
            return found.data.decode(), found.etag
        except UnicodeDecodeError:
            raise _Refused(
                f"The file {path} is no text, so it can only be renamed or deleted here."
            ) from None

    def _in_tree(self, path: str) -> str:
        return (self._root + path.removeprefix(MEMORIES)) or "/"

    def _for_the_model(self, detail: str) -> str:
        return detail.replace(f"'{self._root}/", f"'{MEMORIES}/")


# Fields of a command


def _path(command: Mapping[str, object], name: str) -> str:
    path = _text(command, name)
    bare = path if path == "/" else path.removesuffix("/")
    if bare != MEMORIES and not bare.startswith(MEMORIES + "/"):
        raise _Refused(
            f"The path {path} is not in {MEMORIES}. Give a path that is {MEMORIES} or lies below it."
        )
    if any(segment in ("", ".", "..") for segment in bare.split("/")[1:]):
        raise _Refused(f"The path {path} has an empty, '.' or '..' segment. Give the plain path.")
    if not unicodedata.is_normalized("NFC", bare):
        raise _Refused(f"The path {path} is not in Unicode's composed form (NFC). Write it so.")
    return bare


def _path_below(command: Mapping[str, object], name: str) -> str:
    path = _path(command, name)
    if path == MEMORIES:
        raise _Refused(f"The {MEMORIES} directory itself can't be changed. Name something in it.")
    return path


def _text(command: Mapping[str, object], name: str, *, default: str | None = None) -> str:
    text = command.get(name, default)
    if not isinstance(text, str):
        raise _Refused(f"The command needs `{name}` as text.")
    return text


def _number(value: object, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _Refused(f"The command needs `{name}` as a whole number.")
    return value


def _view_range(command: Mapping[str, object], total: int) -> tuple[int, int]:
    wanted = command.get("view_range")
    if wanted is None:
        return 1, total
    if not isinstance(wanted, list | tuple) or len(wanted) != 2:
        raise _Refused("`view_range` must be two line numbers: [first, last].")
    first, last = (_number(value, "view_range") for value in wanted)
    if not 1 <= first <= max(total, 1) or (last != -1 and last < first):
        raise _Refused(
            f"Invalid `view_range` parameter: [{first}, {last}]. The file has {total} lines, from 1; "
            "the last may be -1 for the end."
        )
    return first, total if last == -1 else min(last, total)


def _missing(path: str) -> _Refused:
    return _Refused(f"The path {path} does not exist. Please provide a valid path.")


def _told(done: Told) -> str:
    return f"\nTake care:\n{warnings_text(done.warnings)}" if done.warnings else ""


# Lines


def _numbered(lines: list[str], first: int, last: int) -> str:
    """Lines with their numbers, as many as may be shown at once; says where to go on."""
    shown: list[str] = []
    length = 0
    for number, line in enumerate(lines[first - 1 : last], start=first):
        row = f"{number:>6}\t{line}"
        length += len(row) + 1
        if shown and length > MAX_SHOWN_CHARACTERS:
            shown.append(
                f"(Lines {number} to {last} are not shown. View them with view_range [{number}, {last}].)"
            )
            break
        shown.append(row)
    return "\n".join(shown)


def _joined(before: str, added: str, after: str) -> str:
    """Text between two runs of lines, as lines of its own; neither run is rewritten."""
    newline = dominant_newline((before + after).encode())
    if before and not _ends_line(before):
        before += newline
    if after and added and not _ends_line(added):
        added += newline
    return before + added + after


def _ends_line(text: str) -> bool:
    return text_lines(text[-1:]) == [""]


def _in_line_ends_of(text: str, added: str) -> str:
    return plain_line_ends(added).replace("\n", dominant_newline(text.encode()))


def _line_at(text: str, place: int) -> int:
    """The number of the line in which a place lies."""
    return count_lines(text[:place] + "x")


def _size(count: int) -> str:
    """Bytes as `du -h` shows them."""
    if count < 1024:
        return f"{count}B"
    size = count / 1024
    for unit in "KM":
        if size < 1024:
            return f"{size:.1f}{unit}"
        size /= 1024
    return f"{size:.1f}G"
