"""Trees, files, entries and revisions, to be looked at."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from memsvc.curation.models import Entry
from memsvc.curation.scoping import ReadOnlyAdmin
from memsvc.format import MAX_BODY_BYTES
from memsvc.recall.models import AccessCount
from memsvc.tree import reads
from memsvc.tree.access import Access
from memsvc.tree.errors import TreeError
from memsvc.tree.models import File, Revision, Tree
from memsvc.tree.visibility import live_at
from tenants.actors import SYSTEM


@admin.register(Tree)
class TreeAdmin(ReadOnlyAdmin):
    list_display = ("name", "title", "tenant", "revision", "created_at")
    fields = ("id", "tenant", "name", "title", "revision", "created_at")
    readonly_fields = ("id", "created_at")
    list_select_related = ("tenant",)
    search_fields = ("name", "title")
    ordering = ("tenant__slug", "name")


@admin.register(File)
class FileAdmin(ReadOnlyAdmin):
    """The files as they stand now; a page shows what an agent would read, as plain text."""

    list_display = ("path", "tree", "tenant", "size", "lines", "changed_in", "modified_at")
    fields = (
        "tenant",
        "tree",
        "path",
        "size",
        "lines",
        "is_text",
        "created_at",
        "modified_at",
        "changed_in",
        "content",
    )
    readonly_fields = ("content",)
    list_select_related = ("tree", "tenant")
    search_fields = ("path",)
    search_help_text = "A part of the path."
    ordering = ("tenant", "tree", "path")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).filter(live_at(None))

    @admin.display(description="content")
    def content(self, file: File) -> SafeString:
        try:
            found = reads.read_file(Access(tree=file.tree, actor=SYSTEM, writable=False), file.path)
        except TreeError as error:
            return shown(str(error))
        return shown(found.data.decode() if found.is_text else f"(no text, {found.size:,} bytes)")


@admin.register(Entry)
class EntryAdmin(ReadOnlyAdmin):
    list_display = (
        "entry_id",
        "category",
        "summary",
        "path",
        "tree",
        "tenant",
        "created",
        "confidence",
        "superseded_by",
    )
    fields = (
        *(
            "tenant",
            "tree",
            "path",
            "entry_id",
            "category",
            "created",
            "source",
            "confidence",
            "tags",
            "summary",
            "metadata",
        ),
        *("supersedes", "superseded_by", "superseded_in", "expires_at", "added_in", "accesses", "written"),
    )
    readonly_fields = ("path", "accesses", "written")
    list_select_related = ("file", "tree", "tenant")
    search_fields = ("entry_id", "summary", "text")
    search_help_text = "A part of the id, the summary or the text."
    ordering = ("-created", "-pk")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).filter(live_at(None))

    @admin.display(ordering="file__path")
    def path(self, entry: Entry) -> str:
        return entry.file.path

    @admin.display(description="found or read")
    def accesses(self, entry: Entry) -> str:
        counted = AccessCount.objects.filter(
            tenant_id=entry.tenant_id, tree_id=entry.tree_id, block=entry
        ).first()
        return f"{counted.count:,} times, last {counted.last_at:%Y-%m-%d %H:%M} UTC" if counted else "never"

    @admin.display(description="as it is written")
    def written(self, entry: Entry) -> SafeString:
        return shown(entry.head + entry.text)


@admin.register(Revision)
class RevisionAdmin(ReadOnlyAdmin):
    # What leads to its page, and what its row says; the id of the actor is on the page only.
    list_display = (
        "number",
        *(each.name for each in Revision._meta.fields if each.name not in ("id", "number", "actor_id")),
    )
    list_select_related = ("tree", "tenant")
    search_fields = ("actor_name", "message")
    ordering = ("-at", "-pk")


def shown(text: str) -> SafeString:
    """Text as it stands: escaped, in a fixed width, and with a word where it is cut."""
    if len(text) <= MAX_BODY_BYTES:
        return format_html("<pre>{}</pre>", text)
    return format_html("<pre>{}</pre><p>(cut after {} characters)</p>", text[:MAX_BODY_BYTES], MAX_BODY_BYTES)
