"""What requests may hold: one class for each body and each query string; what is answered is in `answers`.

A name that is not known is refused, so that a typo is an error and not silence.
"""

from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import Any, ClassVar

from django.conf import settings
from rest_framework import serializers

from memsvc.api.fields import (
    MAX_NUMBER,
    BytesField,
    EnumField,
    FlagField,
    FolderField,
    InstantField,
    LimitField,
    NumberField,
    PathField,
    TextField,
    fields_of,
)
from memsvc.contract.accounts import LANGUAGES
from memsvc.contract.context import ContextFormat
from memsvc.contract.requests import (
    MAX_MESSAGE_BYTES,
    MAX_PAGE,
    MAX_PATTERN_BYTES,
    AuditRequest,
    EntriesRequest,
    EntryDraft,
    EntryRequest,
    Mode,
    RevisionsRequest,
    SearchRequest,
    SuccessorRequest,
    UndoRequest,
)
from memsvc.format import MemoryKind
from memsvc.recall.context import MAX_BUDGET
from memsvc.recall.notebooks import Keep
from memsvc.transfer.formats import ImportFormat
from memsvc.tree.commands import OnConflict
from memsvc.tree.models import DEFAULT_LANGUAGE
from memsvc.tree.trees import MAX_DESCRIPTION_BYTES

# Of one upload or download.
MAX_ITEMS = 1000


class Encoding(StrEnum):
    UTF8 = "utf-8"
    BASE64 = "base64"


class Input(serializers.Serializer[Any]):
    """A JSON object. Optional fields that are absent or null have their default, unless null says something."""

    # A request of the contract, which gives it further fields.
    asks: ClassVar[type | None] = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if asks := vars(cls).get("asks"):
            cls._declared_fields |= fields_of(asks)

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, Mapping):
            raise serializers.ValidationError("This must be an object.", code="invalid")
        unknown = [name for name in data if name not in self.fields]
        if unknown:
            message = f"There is no such field; known are: {', '.join(self.fields) or 'none'}."
            raise serializers.ValidationError(
                {name[:100]: serializers.ErrorDetail(message, code="unknown_field") for name in unknown[:10]}
            )
        given = {
            name: value for name, value in data.items() if value is not None or self.fields[name].allow_null
        }
        return dict(super().to_internal_value(given))

    @classmethod
    def checked(cls, data: Any) -> dict[str, Any]:
        """The fields of what was sent. Raises `ValidationError`."""
        fields: dict[str, Any] = _shape_of(cls).run_validation(data)
        return fields


# One for all requests: each would copy its fields, which takes several times longer than to check them.
@cache
def _shape_of(kind: type[Input]) -> Input:
    return kind()


class Query(Input):
    """The parameters of a URL. Those that are lists may be repeated, others not."""

    in_url = True

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        return super().to_internal_value({name: self._value(name, values) for name, values in data.lists()})

    def _value(self, name: str, values: list[str]) -> list[str] | str:
        if isinstance(self.fields.get(name), serializers.ListField):
            return values
        if len(values) > 1:
            raise serializers.ValidationError({name[:100]: ["This may be given once."]}, code="repeated")
        return values[0]


class NoQuery(Query):
    """An endpoint without parameters."""


class Nothing(Input):
    """A call whose body holds nothing."""


def revision_field() -> NumberField:
    """Which revision to read; now when it is absent."""
    return NumberField(minimum=0, maximum=MAX_NUMBER, default=None)


def message_field() -> TextField:
    """Why it was done, for the history."""
    return TextField(max_bytes=MAX_MESSAGE_BYTES, default="")


def content_field(**options: Any) -> TextField:
    return TextField(max_bytes=settings.MAX_BODY_BYTES, nul_allowed=True, **options)


class AsOf(Input):
    """Which moment to read: a revision, or what was the newest one at an instant; now when neither is given."""

    revision = revision_field()
    at = InstantField(default=None)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["revision"] is not None and attrs["at"] is not None:
            raise serializers.ValidationError({"at": ["Give either revision or at."]}, code="conflict")
        return attrs


class RevisionQuery(AsOf, Query):
    pass


class PageQuery(Query):
    limit = LimitField(default=100, maximum=MAX_PAGE)
    cursor = TextField(default=None)


# Files


class FilesQuery(RevisionQuery):
    prefix = FolderField(default="/")
    depth = NumberField(minimum=1, maximum=1, default=None)
    limit = LimitField(default=1000, maximum=MAX_PAGE)
    cursor = TextField(default=None)


class FileQuery(RevisionQuery):
    offset = NumberField(default=0)
    limit = NumberField(default=2000)


class DeleteQuery(Query):
    recursive = FlagField(default=False)


class FileContent(Input):
    """The content of a file, as text or as base64."""

    content = content_field()
    encoding = EnumField(Encoding, default=Encoding.UTF8)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["encoding"] is Encoding.BASE64:
            attrs["content"] = BytesField().run_validation(attrs["content"])
        return attrs


class FileContentInput(FileContent):
    message = message_field()


class PatchInput(Input):
    """Either a replacement or an addition."""

    old_string = content_field(default=None)
    new_string = content_field(default=None)
    replace_all = FlagField(default=False)
    append = content_field(default=None)
    message = message_field()

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        replaces = attrs["old_string"] is not None and attrs["new_string"] is not None
        half = attrs["old_string"] is not None or attrs["new_string"] is not None
        appends = attrs["append"] is not None
        if replaces and not appends:
            return attrs
        if appends and not half and not attrs["replace_all"]:
            return attrs
        raise serializers.ValidationError(
            {"": ["Give either old_string and new_string, or append."]}, code="required"
        )


class GrepInput(AsOf):
    pattern = TextField(max_bytes=MAX_PATTERN_BYTES, nul_allowed=True)
    path = FolderField(default="/")
    glob = TextField(max_bytes=MAX_PATTERN_BYTES, nul_allowed=True, default=None)
    max_count = NumberField(minimum=1, default=None)


class GlobInput(AsOf):
    pattern = TextField(max_bytes=MAX_PATTERN_BYTES, nul_allowed=True)
    path = FolderField(default="/")


class MoveFields(Input):
    source = PathField()  # type: ignore[assignment]  # a field of the request, not the option
    destination = PathField()
    overwrite = FlagField(default=False)


class MoveInput(MoveFields):
    message = message_field()


class AnyPathField(TextField):
    """A path that may be wrong: it gets its verdict among the others."""

    def __init__(self) -> None:
        super().__init__(max_bytes=8192, nul_allowed=True)


class UploadedFileInput(Input):
    path = AnyPathField()
    content = BytesField()


class UploadInput(Input):
    files: serializers.ListSerializer[Any] = serializers.ListSerializer(
        child=UploadedFileInput(), max_length=MAX_ITEMS
    )


class DownloadInput(Input):
    paths = serializers.ListField(child=AnyPathField(), max_length=MAX_ITEMS)


# Entries


class EntriesQuery(RevisionQuery):
    asks = EntriesRequest


class SearchInput(AsOf):
    """A question, and which entries may answer it."""

    asks = SearchRequest

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        attrs = super().validate(attrs)
        if attrs["scoring"] == "mneme":
            # Its ranking goes by vectors alone, knows no time of day, and ends with its first page.
            unfit = {"mode": attrs["mode"] != Mode.HYBRID, "recency": attrs["recency"]}
            unfit |= {name: attrs[name] is not None for name in ("timezone", "cursor")}
            reason = "This does not go with the scoring 'mneme'."
        else:
            names = ("half_life_days", "use_confidence", "authority_weights")
            unfit = {name: attrs[name] is not None for name in names}
            reason = "This goes with the scoring 'mneme' only."
        if wrong := [name for name, is_unfit in unfit.items() if is_unfit]:
            raise serializers.ValidationError({name: [reason] for name in wrong}, code="conflict")
        return attrs


# Which fields go with a format beside those that go with all.
_CONTEXT_FIELDS = {
    ContextFormat.PYDANTIC_DEEP: {"agent", "keep", "max_lines"},
    ContextFormat.HARNESS: {"query", "agent", "max_lines"},
}


class ContextQuery(RevisionQuery):
    """What a block for a prompt is to be about, how large and how written; the last three are of notebooks only."""

    query = TextField(max_bytes=MAX_PATTERN_BYTES, default="")
    token_budget = NumberField(minimum=1, maximum=MAX_BUDGET, default=None)
    format = EnumField(ContextFormat, default=ContextFormat.MARKDOWN)
    agent = TextField(default=None)
    keep = EnumField(Keep, default=None)
    max_lines = NumberField(minimum=1, default=None)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        attrs = super().validate(attrs)
        fit = _CONTEXT_FIELDS.get(attrs["format"], {"query"})
        if wrong := [
            name for name in ("query", "agent", "keep", "max_lines") if attrs[name] and name not in fit
        ]:
            reason = f"This does not go with the format {attrs['format']}."
            raise serializers.ValidationError({name: [reason] for name in wrong}, code="conflict")
        return attrs


class EntryFields(Input):
    """An entry to be stored. What the service owns (id, author, status) can't be set."""

    asks = EntryDraft


class EntryInput(EntryFields):
    asks = EntryRequest


class SuccessorInput(Input):
    """An entry in the place of another: what is absent of category, tags, metadata and expires_at is kept."""

    asks = SuccessorRequest


class EpisodesQuery(Query):
    since = InstantField(default=None)
    limit = LimitField(default=100, maximum=MAX_PAGE)


class IndexQuery(RevisionQuery):
    kind = EnumField(MemoryKind, default=None)


# History


class RevisionsQuery(Query):
    asks = RevisionsRequest


class AuditQuery(Query):
    asks = AuditRequest


class DiffQuery(Query):
    against = revision_field()
    path = FolderField(default="/")


class BlameQuery(RevisionQuery):
    path = PathField()


class RestoreInput(Input):
    """What to bring back: a file or folder, or an entry; all that the key sees when neither is given."""

    path = FolderField(default=None)
    entry = TextField(default=None)
    message = message_field()

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["path"] is not None and attrs["entry"] is not None:
            raise serializers.ValidationError({"entry": ["Give either path or entry."]}, code="conflict")
        return attrs


class UndoInput(Input):
    """Whose changes to take back: those of one revision, or an actor's from the revision `since` on."""

    asks = UndoRequest

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if (attrs["revision"] is None) == (attrs["actor"] is None):
            raise serializers.ValidationError({"": ["Give either revision or actor."]}, code="required")
        if attrs["revision"] is not None and attrs["since"] is not None:
            raise serializers.ValidationError({"since": ["This goes with actor only."]}, code="conflict")
        return attrs


# Trees and all of them


def tree_description_field(**options: Any) -> TextField:
    return TextField(max_bytes=MAX_DESCRIPTION_BYTES, **options)


class TreeName(Input):
    name = TextField(max_bytes=255)

    def validate_name(self, name: str) -> str:
        if not name.strip():
            raise serializers.ValidationError("A tree needs a name.", code="invalid")
        return name


Language = StrEnum("Language", {name.upper(): name for name in LANGUAGES})  # type: ignore[misc]


class TreeInput(TreeName):
    description = tree_description_field(default="")
    language = EnumField(Language, default=DEFAULT_LANGUAGE)


class TreePatch(Input):
    description = tree_description_field(default=None)
    language = EnumField(Language, default=None)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["description"] is None and attrs["language"] is None:
            raise serializers.ValidationError({"": ["Give description or language."]}, code="required")
        return attrs


class CloneInput(TreeName):
    revision = revision_field()


class DeleteTreeQuery(Query):
    confirm = TextField(default="")


class ImportQuery(Query):
    """`format` where the Content-Type doesn't say it; `only` the one tree or agent of several in the file.

    `on_conflict` says what counts where the tree has, or had, something else: the tree's, the import's, or both.
    """

    dry_run = FlagField(default=False)
    format = EnumField(ImportFormat, default=None)
    on_conflict = EnumField(OnConflict, default=OnConflict.KEEP)
    only = TextField(default=None)


class BatchInput(Input):
    operations = serializers.ListField(child=serializers.DictField(), min_length=1)
    message = message_field()
