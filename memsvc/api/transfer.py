from collections.abc import Iterator
from contextlib import ExitStack
from tempfile import TemporaryFile
from typing import Any, BinaryIO, ClassVar, cast

from django.conf import settings
from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response

from memsvc.api.moments import revision_of
from memsvc.api.parsers import copy_body
from memsvc.api.problems import InvalidRequest
from memsvc.api.serializers import ImportQuery, RevisionQuery
from memsvc.api.views import TreeView
from memsvc.transfer.bundles import export_bundle
from memsvc.transfer.exports import export_zip
from memsvc.transfer.imports import import_zip
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
        return StreamingHttpResponse(
            self.pieces(self.access, revision_of(self.access, self.params)),
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


class ZipParser(BaseParser):
    """Copies the archive to a file, which can be read in any order; the view closes it."""

    media_type = ZIP_MEDIA_TYPE

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        archive = parser_context["view"].files.enter_context(TemporaryFile())  # noqa: SIM115
        copy_body(stream, archive, parser_context["request"].META)
        return archive


class ImportsView(TreeView):
    """Bring a zip archive into the tree: all of it, as one revision, or nothing."""

    scopes = {"POST": Scope.WRITE}
    queries = {"POST": ImportQuery}
    parser_classes = (ZipParser,)

    def dispatch(self, *args: Any, **kwargs: Any) -> HttpResponseBase:
        with ExitStack() as self.files:
            return super().dispatch(*args, **kwargs)

    @property
    def max_body_bytes(self) -> int:
        return int(settings.MAX_IMPORT_BYTES)

    def post(self, request: Request, tree: str) -> Response:
        access = self.access
        if not request.data:
            raise InvalidRequest("Send a zip archive as the body.")
        report = import_zip(access, cast(BinaryIO, request.data), dry_run=self.params["dry_run"])
        return Response(report.as_json())
