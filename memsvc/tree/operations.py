"""The operations of a batch: each is one service call as a value, with its own precondition."""

from dataclasses import dataclass

from memsvc.contract.requests import EntryDraft
from memsvc.tree.commands import Precondition


@dataclass(frozen=True, slots=True)
class WriteFile:
    path: str
    content: str | bytes
    precondition: Precondition | None = None


@dataclass(frozen=True, slots=True)
class EditFile:
    path: str
    old_string: str
    new_string: str
    replace_all: bool = False
    precondition: Precondition | None = None


@dataclass(frozen=True, slots=True)
class AppendFile:
    path: str
    text: str
    precondition: Precondition | None = None


@dataclass(frozen=True, slots=True)
class DeletePath:
    path: str
    recursive: bool = False
    precondition: Precondition | None = None


@dataclass(frozen=True, slots=True)
class MovePath:
    source: str
    destination: str
    overwrite: bool = False


@dataclass(frozen=True, slots=True)
class AddEntry:
    draft: EntryDraft


@dataclass(frozen=True, slots=True)
class RetireEntry:
    entry_id: str
    precondition: Precondition | None = None


type Operation = WriteFile | EditFile | AppendFile | DeletePath | MovePath | AddEntry | RetireEntry
