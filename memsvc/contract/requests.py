"""What can be asked, each question once: the parameters of a client's method, and the fields that the service takes.

A field that is left at its default is not sent. What the service checks beyond the type is said by the marks.
"""

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from datetime import UTC, datetime
from enum import Enum, StrEnum
from string import punctuation
from typing import Annotated, Any, Final, Literal, cast
from urllib.parse import quote, unquote_to_bytes

from memsvc.contract.wire import Json, Named, Wire, members_of
from memsvc.format.entries import DEFAULT_SOURCE, Confidence, Kept
from memsvc.format.layout import MemoryCategory, MemoryKind
from memsvc.format.refusals import InvalidText
from memsvc.format.text import checked_text

# Of a page of a list.
MAX_PAGE: Final = 1000
MAX_PATTERN_BYTES: Final = 4096
MAX_MESSAGE_BYTES: Final = 1000
MAX_RUN_ID_CHARACTERS: Final = 200
RUN_ID_HEADER: Final = "Memsvc-Run-Id"
# Headers hold no more than this safely, and lose blanks at their ends.
RUN_ID_PATTERN: Final = "([!-$&-~]|%[0-9A-Fa-f]{2})*"
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f]")


class Takes(Enum):
    FOLDER = "the absolute path of a folder"
    ZONE = "an IANA time zone"
    FILTER = "for each name a value, or an object of operators"
    CONTENT = "text as large as a request may be"
    METADATA = "names with text, a number, a boolean, or a list of these"
    EXPIRY = "an instant; null is never"


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
    mode: SearchMode = "hybrid"
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
    scoring: Scoring = "memsvc"
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
    status: StatusName | None = "active"
    since: datetime | None = None
    until: datetime | None = None
    path_prefix: Annotated[str | None, Takes.FOLDER] = None
    metadata: Annotated[Mapping[str, object] | None, Takes.FILTER] = None
    limit: Annotated[int | None, PageSize(100)] = None
    cursor: str | None = None
    revision: Annotated[AsOf | None, Wire.UNSENT] = None


@dataclass(frozen=True, slots=True)
class EntryDraft:
    """An entry before it has an id and a place.

    `when` is the instant that the entry refers to (naive means UTC, None means now); it gives the month of an
    episode's file. `title` names a procedure's file. `supersedes` retires that entry in the same revision.
    After `expires_at` the entry is invisible to every reader; None stays, and one that supersedes a temporary entry
    is temporary too unless it says otherwise. `metadata` are further keys of its frontmatter; None are those of the
    superseded entry, just as they are written there. Without a summary, an entry in the place of one that has
    one gets the first line of its own body; "" is none.
    """

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
class EntryRequest(EntryDraft):
    message: Message = ""


@dataclass(frozen=True, slots=True)
class SuccessorRequest:
    """An entry in the place of another: what is absent of category, tags, metadata and expires_at is kept.

    A `summary` of None is made from the body where the old one has any; "" is none.
    """

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
class RevisionFilter:
    """Which revisions are wanted: by an actor's id, of a file or folder, of a time (`since` until before `until`), of a
    run; those that name no run with an empty `run_id`.
    """

    actor: str | None = None
    path: Annotated[str | None, Takes.FOLDER] = "/"
    since: datetime | None = None
    until: datetime | None = None
    run_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionsRequest(RevisionFilter):
    """Which revisions to list, newest first."""

    limit: Annotated[int | None, PageSize(100)] = None
    cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Which events of the audit are wanted: of a tree by its name, by an actor's id, an action, an outcome ("done", or
    the code of a refusal), of a time (`since` until before `until`).
    """

    tree: str | None = None
    actor: str | None = None
    action: str | None = None
    outcome: str | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRequest(AuditFilter):
    """Which events of the audit to list, newest first."""

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


def checked_run_id(run_id: str) -> str:
    """`run_id` if it can say which run of an agent asks: up to 200 characters, no controls. Raises `InvalidText`."""
    if len(run_id) > MAX_RUN_ID_CHARACTERS:
        raise InvalidText(f"run_id is too long: at most {MAX_RUN_ID_CHARACTERS} characters; shorten it")
    checked_text(run_id, field="run_id", max_bytes=4 * MAX_RUN_ID_CHARACTERS)
    if found := _CONTROL.search(run_id):
        raise InvalidText(f"run_id holds a control character at character {found.start()}; take it out")
    return run_id


def run_id_headers(run_id: str) -> dict[str, str]:
    """The header with a run's id, or none; what no header holds as it is stands in it percent-encoded, in UTF-8."""
    sent = quote(checked_run_id(run_id), safe=punctuation.replace("%", ""))
    return {RUN_ID_HEADER: sent} if sent else {}


def run_id_in_header(value: str) -> str:
    """The run's id that `run_id_headers` made such a value of. Raises `InvalidText`."""
    if not re.fullmatch(RUN_ID_PATTERN, value):
        raise InvalidText(
            f"{RUN_ID_HEADER} takes visible ASCII; send blanks, other characters and the percent sign "
            "percent-encoded, in UTF-8"
        )
    try:
        return checked_run_id(unquote_to_bytes(value).decode())
    except UnicodeDecodeError:
        raise InvalidText(f"{RUN_ID_HEADER} holds percent-escapes that are no UTF-8") from None


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
