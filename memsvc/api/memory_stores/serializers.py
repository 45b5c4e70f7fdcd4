"""What requests of this door may hold."""

from enum import StrEnum
from typing import Any

from memsvc.api.fields import EnumField, FlagField, InstantField, LimitField, NumberField, TextField
from memsvc.api.memory_stores.fields import (
    MAX_DESCRIPTION_CHARACTERS,
    MAX_NAME_CHARACTERS,
    IgnoredField,
    MemoryPathField,
    MemoryTextField,
    MetadataField,
    PathPrefixField,
    Sha256Field,
    ShortTextField,
)
from memsvc.api.serializers import Input, Query

MAX_LISTED = 100
MAX_LISTED_IN_FULL = 20


class View(StrEnum):
    BASIC = "basic"
    FULL = "full"


class Operation(StrEnum):
    CREATED = "created"
    MODIFIED = "modified"
    DELETED = "deleted"


class PreconditionType(StrEnum):
    CONTENT_SHA256 = "content_sha256"


class BaseQuery(Query):
    """`beta` is what clients of others add."""

    beta = IgnoredField(default=None)


class PageQuery(BaseQuery):
    limit = LimitField(default=20, maximum=MAX_LISTED)
    page = TextField(default=None)


class ViewQuery(BaseQuery):
    view = EnumField(View, default=View.BASIC)


class FullViewQuery(BaseQuery):
    view = EnumField(View, default=View.FULL)


class SinceAndUntil(Query):
    """Both ends inclusive. Their names are none that Python could give to a field."""

    def get_fields(self) -> Any:
        times = {f"created_at[{end}]": InstantField(default=None) for end in ("gte", "lte")}
        return {**super().get_fields(), **times}


# Stores


class StoresQuery(PageQuery, SinceAndUntil):
    include_archived = FlagField(default=False)


def name_field(**options: Any) -> ShortTextField:
    return ShortTextField(minimum=1, maximum=MAX_NAME_CHARACTERS, controls=False, **options)


def description_field(**options: Any) -> ShortTextField:
    return ShortTextField(maximum=MAX_DESCRIPTION_CHARACTERS, **options)


class StoreInput(Input):
    name = name_field()
    description = description_field(default="")
    metadata = MetadataField(default=dict)


class StorePatch(Input):
    """What is left out stays; of `metadata`, pairs that are left out stay, and null takes one away."""

    name = name_field(default=None)
    description = description_field(default=None)
    metadata = MetadataField(patch=True, default=dict)


# Memories


class MemoriesQuery(PageQuery, ViewQuery):
    path_prefix = PathPrefixField(default="/")
    depth = NumberField(minimum=0, maximum=1, default=0)


class MemoryInput(Input):
    path = MemoryPathField()
    content = MemoryTextField()


class PreconditionInput(Input):
    type = EnumField(PreconditionType)
    content_sha256 = Sha256Field()


class MemoryPatch(Input):
    """What is left out stays."""

    path = MemoryPathField(default=None)
    content = MemoryTextField(default=None)
    precondition = PreconditionInput(default=None)


class DeleteMemoryQuery(BaseQuery):
    expected_content_sha256 = Sha256Field(default=None)


# Versions


class VersionsQuery(PageQuery, ViewQuery, SinceAndUntil):
    memory_id = TextField(default=None)
    operation = EnumField(Operation, default=None)
    session_id = TextField(default=None)
    api_key_id = TextField(default=None)
