"""The routes of the API. A path below `files/` is the absolute path of a file without its first slash."""

from django.urls import path, register_converter
from django.urls.converters import IntConverter

from memsvc.api.audit import AuditExportView, AuditView
from memsvc.api.batch import BatchView
from memsvc.api.context import ContextView
from memsvc.api.entries import (
    EntriesView,
    EntryAccessesView,
    EntryView,
    EpisodesView,
    IndexView,
    SupersedeView,
)
from memsvc.api.erasures import ErasuresView
from memsvc.api.files import DownloadView, FilesView, FileView, GlobView, GrepView, MoveView, UploadView
from memsvc.api.history import (
    BlameView,
    DiffView,
    EntryHistoryView,
    RestoreView,
    RevisionsView,
    RevisionView,
    UndoView,
)
from memsvc.api.keys import KeysView, KeyView, RotateKeyView
from memsvc.api.me import MeView
from memsvc.api.memory_stores.memories import MemoriesView, MemoryView
from memsvc.api.memory_stores.stores import ArchiveMemoryStoreView, MemoryStoresView, MemoryStoreView
from memsvc.api.memory_stores.versions import MemoryVersionsView, MemoryVersionView, RedactMemoryVersionView
from memsvc.api.search import SearchView
from memsvc.api.transfer import BundleExportView, ImportsView, JsonLinesExportView, ZipExportView
from memsvc.api.trees import ArchiveView, CloneView, ScaffoldView, TreeDetailView, TreesView
from memsvc.api.usage import UsageView


class AnyText:
    """The rest of a URL, line breaks included: whether it is the path of a file is for the view to say."""

    regex = "(?s:.+)"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


class Number(IntConverter):
    """A number that a bigint can hold."""

    regex = "[0-9]{1,18}"


register_converter(AnyText, "anytext")
register_converter(Number, "number")

urlpatterns = [
    path("v1/me", MeView.as_view()),
    path("v1/keys", KeysView.as_view()),
    path("v1/keys/<uuid:key_id>:rotate", RotateKeyView.as_view()),
    path("v1/keys/<uuid:key_id>", KeyView.as_view()),
    path("v1/usage", UsageView.as_view()),
    path("v1/audit", AuditView.as_view()),
    path("v1/audit.jsonl", AuditExportView.as_view()),
    path("v1/erasures", ErasuresView.as_view()),
    path("v1/trees", TreesView.as_view()),
    path("v1/trees/<str:tree>:scaffold", ScaffoldView.as_view()),
    path("v1/trees/<str:tree>:clone", CloneView.as_view()),
    path("v1/trees/<str:tree>:archive", ArchiveView.as_view()),
    path("v1/trees/<str:tree>:undo", UndoView.as_view()),
    path("v1/trees/<str:tree>", TreeDetailView.as_view()),
    path("v1/trees/<str:tree>/files", FilesView.as_view()),
    path("v1/trees/<str:tree>/files/<anytext:path>", FileView.as_view()),
    path("v1/trees/<str:tree>/files:grep", GrepView.as_view()),
    path("v1/trees/<str:tree>/files:glob", GlobView.as_view()),
    path("v1/trees/<str:tree>/files:move", MoveView.as_view()),
    path("v1/trees/<str:tree>/files:upload", UploadView.as_view()),
    path("v1/trees/<str:tree>/files:download", DownloadView.as_view()),
    path("v1/trees/<str:tree>/entries", EntriesView.as_view()),
    path("v1/trees/<str:tree>/entries/<str:entry_id>:supersede", SupersedeView.as_view()),
    path("v1/trees/<str:tree>/entries/<str:entry_id>", EntryView.as_view()),
    path("v1/trees/<str:tree>/entries/<str:entry_id>/accesses", EntryAccessesView.as_view()),
    path("v1/trees/<str:tree>/entries/<str:entry_id>/history", EntryHistoryView.as_view()),
    path("v1/trees/<str:tree>/revisions", RevisionsView.as_view()),
    path("v1/trees/<str:tree>/revisions/<number:number>", RevisionView.as_view()),
    path("v1/trees/<str:tree>/revisions/<number:number>/diff", DiffView.as_view()),
    path("v1/trees/<str:tree>/revisions/<number:number>:restore", RestoreView.as_view()),
    path("v1/trees/<str:tree>/blame", BlameView.as_view()),
    path("v1/trees/<str:tree>/search", SearchView.as_view()),
    path("v1/trees/<str:tree>/context", ContextView.as_view()),
    path("v1/trees/<str:tree>/episodes", EpisodesView.as_view()),
    path("v1/trees/<str:tree>/index", IndexView.as_view()),
    path("v1/trees/<str:tree>/batch", BatchView.as_view()),
    path("v1/trees/<str:tree>/export.zip", ZipExportView.as_view()),
    path("v1/trees/<str:tree>/export.jsonl", JsonLinesExportView.as_view()),
    path("v1/trees/<str:tree>/export.bundle", BundleExportView.as_view()),
    path("v1/trees/<str:tree>/imports", ImportsView.as_view()),
    path("v1/memory_stores", MemoryStoresView.as_view()),
    path("v1/memory_stores/<str:store_id>", MemoryStoreView.as_view()),
    path("v1/memory_stores/<str:store_id>/archive", ArchiveMemoryStoreView.as_view()),
    path("v1/memory_stores/<str:store_id>/memories", MemoriesView.as_view()),
    path("v1/memory_stores/<str:store_id>/memories/<str:memory_id>", MemoryView.as_view()),
    path("v1/memory_stores/<str:store_id>/memory_versions", MemoryVersionsView.as_view()),
    path("v1/memory_stores/<str:store_id>/memory_versions/<str:version_id>", MemoryVersionView.as_view()),
    path(
        "v1/memory_stores/<str:store_id>/memory_versions/<str:version_id>/redact",
        RedactMemoryVersionView.as_view(),
    ),
]
