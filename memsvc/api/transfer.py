from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Any, ClassVar, cast

from django.conf import settings
from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response

from memsvc.api.answers import answer
from memsvc.api.moments import revision_of
from memsvc.api.parsers import copy_body, declared_length
from memsvc.api.problems import InvalidRequest
from memsvc.api.serializers import ImportQuery, RevisionQuery
from memsvc.api.views import TreeView
from memsvc.transfer.bundles import export_bundle
from memsvc.transfer.exports import export_jsonl, export_zip, record_export
from memsvc.transfer.formats import MEDIA_TYPES, import_file
from memsvc.tree.access import Access
from tenants.scopes import Scope

ZIP_MEDIA_TYPE = "application/zip"


class OneKind(BaseContentNegotiation):
    """For an answer of which there is one kind only, whatever `Accept` says."""

    def select_parser(self, request: Request, parsers: Any) -> BaseParser:
        return parsers[0]  # type: ignore[no-any-return]  # untyped in the stubs

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        return renderers[0], renderers[0].media_type


class ExportView(TreeView):
    """A tree, streamed; one revision always gives the same bytes."""

    scopes = {"GET": Scope.EXPORT}
    queries = {"GET": RevisionQuery}
    content_negotiation_class = OneKind
    media_type: ClassVar[str]
    name: ClassVar[str]

    def pieces(self, access: Access, revision: int | None) -> Iterator[bytes]:
        raise NotImplementedError

    def get(self, request: Request, tree: str) -> StreamingHttpResponse:
        revision = revision_of(self.access, self.params)
        record_export(self.access, revision)
        return StreamingHttpResponse(
            self.pieces(self.access, revision),
            content_type=self.media_type,
            headers={"Content-Disposition": f'attachment; filename="{self.name}"'},
        )


class ZipExportView(ExportView):
    """The files as a zip archive."""

    media_type, name = ZIP_MEDIA_TYPE, "export.zip"

    def pieces(self, access: Access, revision: int | None) -> Iterator[bytes]:
        return export_zip(access, revision)


class BundleExportView(ExportView):
    """The whole history as a git bundle, a commit for each revision."""

    media_type, name = "application/x-git-bundle", "export.bundle"

    def pieces(self, access: Access, revision: int | None) -> Iterator[bytes]:
        return export_bundle(access, revision)


class JsonLinesExportView(ExportView):
    """The files and the entries in them as JSON Lines, interchange v1."""

    media_type, name = "application/jsonl", "export.jsonl"

    def pieces(self, access: Access, revision: int | None) -> Iterator[bytes]:
        return export_jsonl(access, revision)


class FileParser(BaseParser):
    """Copies the body to a file with a name, which can be read in any order; the view closes it."""

    media_type = "*/*"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        file = parser_context["view"].files.enter_context(NamedTemporaryFile())  # noqa: SIM115
        copy_body(stream, file, parser_context["request"].META)
        return file


class ImportsView(TreeView):
    """Bring a tree, or another system's memories, into this tree, as one revision."""

    scopes = {"POST": Scope.WRITE}
    queries = {"POST": ImportQuery}
    parser_classes = (FileParser,)
    long_running = True

    def dispatch(self, *args: Any, **kwargs: Any) -> HttpResponseBase:
        with ExitStack() as self.files:
            return super().dispatch(*args, **kwargs)

    @property
    def max_body_bytes(self) -> int:
        return int(settings.MAX_IMPORT_BYTES)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        # Before the body is read: nobody has to send 50 MB to hear that it is of no kind that is taken.
        media_type = (request.content_type or "").partition(";")[0].strip().lower()
        self.form = self.params["format"] or MEDIA_TYPES.get(media_type)
        if self.form is None and declared_length(request.META):
            raise UnsupportedMediaType(media_type)

    def post(self, request: Request, tree: str) -> Response:
        access = self.access
        if not request.data or self.form is None:
            raise InvalidRequest("Send the file to import as the body.")
        report = import_file(
            access,
            Path(cast(IO[bytes], request.data).name),
            self.form,
            on_conflict=self.params["on_conflict"],
            dry_run=self.params["dry_run"],
            only=self.params["only"],
        )
        return answer(report)
