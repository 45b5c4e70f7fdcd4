from django.http import HttpResponse
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from memsvc.api.answers import answer, answer_if_changed
from memsvc.api.moments import revision_of
from memsvc.api.parsers import RawParser, StrictJSONParser
from memsvc.api.preconditions import is_known, precondition_of, quoted
from memsvc.api.serializers import (
    DeleteQuery,
    DownloadInput,
    FileContentInput,
    FileQuery,
    FilesQuery,
    GlobInput,
    GrepInput,
    MoveInput,
    PatchInput,
    UploadInput,
)
from memsvc.api.views import TreeView
from memsvc.contract.files import Downloaded, FoundFiles, Items, Listed, Page, Uploaded
from memsvc.format import InvalidPath, spelt_path
from memsvc.tree import reads, services
from memsvc.tree.access import Access
from memsvc.tree.errors import FileNotFound, IsFolder
from tenants.scopes import Scope


class RawRenderer(BaseRenderer):
    """Chosen by `Accept`, never called: a file's bytes are sent as they are."""

    format = "raw"
    media_type = "application/octet-stream"
    charset = None


class MarkdownRenderer(RawRenderer):
    media_type = "text/markdown"


class PlainRenderer(RawRenderer):
    media_type = "text/plain"


class FilesView(TreeView):
    """All files under a folder, page by page; with `depth=1` a folder's files and folders."""

    scopes = {"GET": Scope.READ}
    queries = {"GET": FilesQuery}

    def get(self, request: Request, tree: str) -> Response:
        params = self.params
        revision = revision_of(self.access, params)
        if params["depth"] is not None:
            found = reads.list_folder(self.access, params["prefix"], revision=revision)
            return answer(Page(found, None), Page[Listed])
        page = reads.list_files(
            self.access,
            params["prefix"],
            after=params["cursor"],
            limit=params["limit"],
            revision=revision,
        )
        return answer(page, Page[Listed])


class FileView(TreeView):
    """One file: a window of its lines as JSON, or its bytes when `Accept` asks for text or octets."""

    scopes = {"GET": Scope.READ, "PUT": Scope.WRITE, "PATCH": Scope.WRITE, "DELETE": Scope.WRITE}
    queries = {"GET": FileQuery, "DELETE": DeleteQuery}
    renderer_classes = (JSONRenderer, MarkdownRenderer, PlainRenderer, RawRenderer)

    def get_renderers(self) -> list[BaseRenderer]:
        # What was changed is told in JSON; whoever can't take that is refused before anything is done.
        return super().get_renderers() if self.request.method in ("GET", "HEAD") else [JSONRenderer()]

    def get_parsers(self) -> list[BaseParser]:
        return [StrictJSONParser(), RawParser()] if self.request.method == "PUT" else [StrictJSONParser()]

    def get(self, request: Request, tree: str, path: str) -> HttpResponse:
        if request.accepted_renderer.format == RawRenderer.format:
            return self._raw(request, spelt_path("/" + path))
        return self._window(request, spelt_path("/" + path))

    def _window(self, request: Request, path: str) -> HttpResponse:
        offset, limit = self.params["offset"], self.params["limit"]
        revision = revision_of(self.access, self.params)
        try:
            page = reads.read_lines(self.access, path, offset=offset, limit=limit, revision=revision)
        except FileNotFound:
            # To an agent that reads lines a folder is no file; here it is told what it is.
            reads.stat(self.access, path, revision=revision)
            raise
        return answer_if_changed(request, page, page.etag)

    def _raw(self, request: Request, path: str) -> HttpResponse:
        found = reads.read_file(self.access, path, revision=revision_of(self.access, self.params))
        if is_known(request, found.etag):
            return HttpResponse(status=304, headers={"ETag": quoted(found.etag)})
        media_type = request.accepted_renderer.media_type
        charset = "; charset=utf-8" if media_type.startswith("text/") and found.is_text else ""
        return HttpResponse(
            found.data, content_type=media_type + charset, headers={"ETag": quoted(found.etag)}
        )

    def put(self, request: Request, tree: str, path: str) -> Response:
        content, message = self._content(request)
        result = services.write_file(
            self.access,
            spelt_path("/" + path),
            content,
            precondition=precondition_of(request),
            message=message,
        )
        return answer(result, status=201 if result.created else 200)

    def _content(self, request: Request) -> tuple[str | bytes, str]:
        if isinstance(request.data, bytes):
            return request.data, ""
        if request.content_type.partition(";")[0].strip().lower() != StrictJSONParser.media_type:
            return b"", ""
        data = self.body(FileContentInput)
        return data["content"], data["message"]

    def patch(self, request: Request, tree: str, path: str) -> Response:
        data, precondition = self.body(PatchInput), precondition_of(request)
        if data["append"] is not None:
            added = services.append_file(
                self.access,
                spelt_path("/" + path),
                data["append"],
                precondition=precondition,
                message=data["message"],
            )
            return answer(added)
        result = services.edit_file(
            self.access,
            spelt_path("/" + path),
            data["old_string"],
            data["new_string"],
            replace_all=data["replace_all"],
            precondition=precondition,
            message=data["message"],
        )
        return answer(result)

    def delete(self, request: Request, tree: str, path: str) -> Response:
        result = services.delete(
            self.access,
            spelt_path("/" + path),
            recursive=self.params["recursive"],
            precondition=precondition_of(request),
        )
        return answer(result)


class GrepView(TreeView):
    scopes = {"POST": Scope.READ}

    def post(self, request: Request, tree: str) -> Response:
        data = self.body(GrepInput)
        found = reads.grep(
            self.access,
            data["pattern"],
            folder=data["path"],
            glob=data["glob"],
            max_count=data["max_count"],
            revision=revision_of(self.access, data),
        )
        return answer(found)


class GlobView(TreeView):
    scopes = {"POST": Scope.READ}

    def post(self, request: Request, tree: str) -> Response:
        data = self.body(GlobInput)
        revision = revision_of(self.access, data)
        found = reads.glob(self.access, data["pattern"], folder=data["path"], revision=revision)
        return answer(FoundFiles(found, None))


class MoveView(TreeView):
    scopes = {"POST": Scope.WRITE}

    def post(self, request: Request, tree: str) -> Response:
        data = self.body(MoveInput)
        result = services.move(
            self.access,
            data["source"],
            data["destination"],
            overwrite=data["overwrite"],
            message=data["message"],
        )
        return answer(result)


class UploadView(TreeView):
    """Many files in one revision, each with a verdict of its own."""

    scopes = {"POST": Scope.WRITE}

    def post(self, request: Request, tree: str) -> Response:
        files = [(item["path"], item["content"]) for item in self.body(UploadInput)["files"]]
        return answer(Items(services.upload_files(self.access, files)), Items[Uploaded])


class DownloadView(TreeView):
    """Many whole files, each with a verdict of its own."""

    scopes = {"POST": Scope.READ}

    def post(self, request: Request, tree: str) -> Response:
        access, paths = self.access, self.body(DownloadInput)["paths"]
        return answer(Items([downloaded(access, path) for path in paths]), Items[Downloaded])


def downloaded(access: Access, path: str) -> Downloaded:
    try:
        return Downloaded(path, reads.read_file(access, path).data, None)
    except (FileNotFound, IsFolder, InvalidPath) as error:
        return Downloaded(path, None, error.code)
