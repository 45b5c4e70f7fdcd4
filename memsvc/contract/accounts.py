"""Keys and trees: who asks, what there is, and how much of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from typing import Annotated, Final

from memsvc.contract.files import Page
from memsvc.contract.wire import Inside, Named, Note, Wire, one_of

# Whose words Postgres can stem; "simple" is for none.
LANGUAGES: Final = (
    *("simple", "arabic", "armenian", "basque", "catalan", "danish", "dutch", "english", "estonian"),
    *("finnish", "french", "german", "greek", "hindi", "hungarian", "indonesian", "irish", "italian"),
    *("lithuanian", "nepali", "norwegian", "portuguese", "romanian", "russian", "serbian", "spanish"),
    *("swedish", "tamil", "turkish", "yiddish"),
)
_UUID: Final = Note(format="uuid")


class Scope(StrEnum):
    """What a key may do. A key without a scope may do nothing."""

    READ = "read"
    WRITE = "write"
    CONSOLIDATE = "consolidate"
    EXPORT = "export"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Me:
    """Whose key this is and what it may do; `tree` is None when it opens every tree of the tenant."""

    tenant_id: Annotated[str, Inside("tenant"), Named("id"), _UUID]
    tenant_slug: Annotated[str, Inside("tenant"), Named("slug")]
    tenant_name: Annotated[str, Inside("tenant"), Named("name")]
    key_id: Annotated[str, Inside("key"), Named("id"), _UUID]
    key_name: Annotated[str, Inside("key"), Named("name")]
    key_prefix: Annotated[str, Inside("key"), Named("prefix")]
    expires_at: Annotated[datetime | None, Inside("key")]
    scopes: frozenset[str]
    tree: str | None
    path_prefix: str
    limits: Mapping[str, int | None]


@dataclass(frozen=True, slots=True)
class TreeInfo:
    """A tree; one with an `archived_at` can't be changed any more. It can be read as of `history_from` and later."""

    name: str
    description: str
    language: Annotated[str, one_of(*LANGUAGES)]
    revision: int
    history_from: Annotated[int, Note("The oldest revision that can be read.")]
    created_at: datetime
    archived_at: datetime | None


@dataclass(frozen=True, slots=True)
class TreeDetail(TreeInfo):
    """A tree, and how much of it the key sees: files, their bytes, and entries, superseded ones too."""

    files: int
    entries: int
    bytes: int


@dataclass(frozen=True, slots=True)
class TreeDeleted:
    name: str
    deleted: bool


@dataclass(frozen=True, slots=True)
class Scaffolded:
    """The paths of what was missing of the memory layout and was made."""

    created: Sequence[str]


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """An API key without its secret part; `tree` is None when it opens every tree of the tenant."""

    id: Annotated[str, _UUID]
    name: str
    prefix: str
    scopes: frozenset[Annotated[str, one_of(*Scope)]]
    tree: str | None
    path_prefix: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key that was just made, and its text: None when an earlier try of the same call has already shown it."""

    info: Annotated[KeyInfo, Wire.FLAT]
    text: Annotated[
        Annotated[str, Note("The key itself; null when a repeat is answered.")] | None, Named("key")
    ] = field(repr=False)


@dataclass(frozen=True, slots=True)
class DayUsage:
    """How many requests a key made on a day, in UTC."""

    day: date
    key_id: Annotated[str, Inside("key"), Named("id"), _UUID]
    key_name: Annotated[str, Inside("key"), Named("name")]
    key_prefix: Annotated[str, Inside("key"), Named("prefix")]
    requests: int


@dataclass(frozen=True, slots=True)
class Stored:
    """What a tenant stores now, in all its trees."""

    trees: int
    files: int
    entries: int
    bytes: int


@dataclass(frozen=True, slots=True)
class UsagePage(Page[DayUsage]):
    stored: Stored
    unused_keys: Annotated[Sequence[KeyInfo], Note("Keys that opened nothing for 90 days, at most 100.")]


@dataclass(frozen=True, slots=True)
class Usage(Stored):
    """What a tenant stores now, and the requests of its keys, the newest days first.

    `unused_keys` still open something, and have opened nothing for 90 days: revoke those that nobody needs.
    """

    requests: Sequence[DayUsage]
    unused_keys: Sequence[KeyInfo] = ()
