"""Erasing for good: what can be asked to go, where it was found, and what stays to say that it went."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final

from memsvc.contract.requests import MaxBytes
from memsvc.contract.wire import Inside, Named, Note, one_of

# Of what names the target of an erasure: no path, id, source or run is longer.
MAX_VALUE_BYTES: Final = 4096


class ErasureKind(StrEnum):
    """What is erased: a tree, a file or folder, an entry, or whatever came in a run, from a source, by an actor."""

    TREE = "tree"
    PATH = "path"
    ENTRY = "entry"
    RUN = "run"
    SOURCE = "source"
    ACTOR = "actor"


class ErasurePlace(StrEnum):
    """A kind of place in which what is erased was found."""

    TREE = "tree"
    FILE = "file"
    TEXT = "text"
    ENTRY = "entry"
    INDEX_ROW = "index_row"
    HISTORY = "history"
    MENTION = "mention"
    MESSAGE = "message"
    RUN_ID = "run_id"
    PATH = "path"
    VECTOR = "vector"
    ACCESS_COUNT = "access_count"
    STORED_ANSWER = "stored_answer"
    JOB = "job"


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasureRequest:
    """What to erase of a tree, for good.

    `value` is the tree's own name, an absolute path (a folder with all below it), an entry's id, a run's id, the
    `source` of entries, or an actor's id. With `dry_run` nothing is changed: the answer lists what would go. With
    `erase_paths` the paths of files of which nothing is left go from the history too.
    """

    tree: str
    kind: ErasureKind
    value: Annotated[str, MaxBytes(MAX_VALUE_BYTES)]
    dry_run: bool = False
    erase_paths: bool = False


@dataclass(frozen=True, slots=True)
class ErasureCertificate:
    """That something was erased: of what kind, when, by whom, and how much in each kind of place. No content."""

    id: Annotated[str, Note(format="uuid")]
    at: datetime
    kind: Annotated[str, one_of(*ErasureKind, "tenant")]
    actor_kind: Annotated[str, Inside("actor"), Named("kind")]
    actor_id: Annotated[str, Inside("actor"), Named("id")]
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ErasedPlace:
    """A place in which what is erased was found, and how often: in a file by its path, in a revision by its number."""

    place: Annotated[str, one_of(*ErasurePlace)]
    where: str
    count: int


@dataclass(frozen=True, slots=True)
class Erased:
    """What an erasure found, by place. `certificate` is None after a dry run.

    `revision` is the one that erased, or the tree's current one where nothing changed; None when the tree is gone.
    """

    dry_run: bool
    revision: int | None
    places: Sequence[ErasedPlace]
    certificate: ErasureCertificate | None
