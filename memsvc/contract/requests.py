"""What can be asked, each question once: the parameters of a client's method, and the fields that the service takes.

A field that is left at its default is not sent. What the service checks beyond the type is said by the marks.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from datetime import UTC, datetime
from enum import Enum, StrEnum
from typing import Annotated, Any, Final, Literal, cast

from memsvc.contract.wire import Json, Named, Wire, members_of
from memsvc.format.entries import DEFAULT_SOURCE, Confidence, Kept
from memsvc.format.layout import MemoryCategory, MemoryKind

# Of a page of a list.
MAX_PAGE: Final = 1000
MAX_PATTERN_BYTES: Final = 4096
MAX_MESSAGE_BYTES: Final = 1000


class Takes(Enum):
    FOLDER = "the absolute path of a folder"
    ZONE = "an IANA time zone"
    FILTER = "for each name a value, or an object of operators"
    CONTENT = "text as large as a request may be"
    METADATA = "names with text, a number, a boolean, or a list of these"
    EXPIRY = "an instant; null is never"


@dataclass(frozen=True, slots=True)
class Choice:
    """One of these, which are given as text."""

    of: type[StrEnum]


@dataclass(frozen=True, slots=True)
class PageSize:
    """How many items an answer may have: what it is when nothing is said, and the most."""

    default: int
    maximum: int = MAX_PAGE


@dataclass(frozen=True, slots=True)
class Between:
    """A number, or each of a mapping, from `minimum` to `maximum`; with `above` more than the minimum."""

    minimum: float
    maximum: float = 2**63 - 1
    above: bool = False


@dataclass(frozen=True, slots=True)
class MaxBytes:
    bytes: int


class Mode(StrEnum):
    """How entries are found.

    HYBRID by words and by meaning, LEXICAL by words, SEMANTIC by meaning, ranked; WORDS are those that hold all
    words of the query, SUBSTRING those that hold it as it stands, newest first.
    """

    HYBRID = "hybrid"
    LEXICAL = "lexical"
    SEMANTIC = "semantic"
    WORDS = "words"
    SUBSTRING = "substring"


class ScoringName(StrEnum):
    MEMSVC = "memsvc"
    MNEME = "mneme"


class Status(StrEnum):
    ACTIVE = "active"
    SUPERSEDED = "superseded"
    ALL = "all"


type SearchMode = Literal["hybrid", "lexical", "semantic", "words", "substring"]
type Scoring = Literal["memsvc", "mneme"]
type StatusName = Literal["active", "superseded", "all"]
# Why it was done, for the history.
Message = Annotated[str, MaxBytes(MAX_MESSAGE_BYTES)]
# A revision's number, or an instant: what was the newest revision then.
type AsOf = int | datetime


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A question, and which entries may answer it."""

    query: Annotated[str, MaxBytes(MAX_PATTERN_BYTES)] = ""
    _: KW_ONLY
    mode: Annotated[SearchMode, Choice(Mode)] = "hybrid"
    kind: MemoryKind | None = None
    category: MemoryCategory | None = None
    tags: Sequence[str] = ()
    any_tags: Sequence[str] = ()
    source: str | None = None
    actor: str | None = None
    confidence: Confidence | None = None
    since: datetime | None = None
    until: datetime | None = None
    path_prefix: Annotated[str | None, Takes.FOLDER] = None
    metadata: Annotated[Mapping[str, object] | None, Takes.FILTER] = None
    include_superseded: bool = False
    recency: bool = False
    timezone: Annotated[str | None, Takes.ZONE] = None
    scoring: Annotated[Scoring, Choice(ScoringName)] = "memsvc"
    half_life_days: Annotated[float | None, Between(0, 1e6, above=True)] = None
    use_confidence: bool | None = None
    authority_weights: Annotated[Mapping[MemoryKind, float] | None, Between(0, 1000)] = None
    limit: Annotated[int | None, PageSize(20)] = None
    cursor: str | None = None
    revision: Annotated[AsOf | None, Wire.UNSENT] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EntriesRequest:
    """Which entries to list, newest first."""

    kind: MemoryKind | None = None
    category: MemoryCategory | None = None
    tags: Annotated[Sequence[str], Named("tag")] = ()
    source: str | None = None
    confidence: Confidence | None = None
    status: Annotated[StatusName | None, Choice(Status)] = "active"
    since: datetime | None = None
    until: datetime | None = None
    path_prefix: Annotated[str | None, Takes.FOLDER] = None
    metadata: Annotated[Mapping[str, object] | None, Takes.FILTER] = None
    limit: Annotated[int | None, PageSize(100)] = None
    cursor: str | None = None
    revision: Annotated[AsOf | None, Wire.UNSENT] = None


@dataclass(frozen=True, slots=True)
class NewEntry:
    """An entry to be stored. What the service owns (id, author, status) can't be set."""

    category: MemoryCategory
    body: Annotated[str, Takes.CONTENT]
    _: KW_ONLY
    summary: str | None = None
    tags: Sequence[str] = ()
    source: str = DEFAULT_SOURCE
    confidence: Confidence = Confidence.MEDIUM
    title: str | None = None
    when: datetime | None = None
    supersedes: str | None = None
    expires_at: Annotated[datetime | Kept | None, Takes.EXPIRY] = Kept.KEPT
    metadata: Annotated[Mapping[str, object] | None, Takes.METADATA] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryRequest(NewEntry):
    message: Message = ""


@dataclass(frozen=True, slots=True)
class SuccessorRequest:
    """An entry in the place of another: what is absent of category, tags, metadata and expires_at is kept."""

    entry_id: Annotated[str, Wire.UNSENT]
    category: MemoryCategory | None = field(default=None, kw_only=True)
    body: Annotated[str, Takes.CONTENT]
    _: KW_ONLY
    summary: str | None = None
    tags: Sequence[str] | None = None
    source: str = DEFAULT_SOURCE
    confidence: Confidence = Confidence.MEDIUM
    title: str | None = None
    when: datetime | None = None
    expires_at: Annotated[datetime | Kept | None, Takes.EXPIRY] = Kept.KEPT
    metadata: Annotated[Mapping[str, object] | None, Takes.METADATA] = None
    message: Message = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionsRequest:
    """Which revisions to list, newest first: by an actor's id, of a file or folder, of a time."""

    actor: str | None = None
    path: Annotated[str | None, Takes.FOLDER] = "/"
    since: datetime | None = None
    until: datetime | None = None
    limit: Annotated[int | None, PageSize(100)] = None
    cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoRequest:
    """Whose changes to take back: those of one revision, or an actor's from the revision `since` on."""

    revision: Annotated[int | None, Between(1)] = None
    actor: str | None = None
    since: Annotated[int | None, Between(1)] = None
    dry_run: bool = False
    skip_conflicts: bool = False
    message: Message = ""


def given(request: Any) -> dict[str, Json]:
    """What is asked beyond the defaults, as it is sent. A naive instant is in UTC."""
    defaults = {each.name: each.default for each in fields(request)}
    sent = {}
    for member in members_of(cast(Hashable, type(request))):
        value = getattr(request, member.attribute)
        if value == defaults[member.attribute]:
            continue
        if isinstance(value, datetime):
            # With the offset that it has: it says in which month an episode was.
            sent[member.name] = (value if value.tzinfo else value.replace(tzinfo=UTC)).isoformat()
        else:
            sent[member.name] = member.form.write(value) if member.form.write else value
    return sent
