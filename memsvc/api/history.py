from typing import Any

from django.http import HttpResponse
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from memsvc.api.answers import answer
from memsvc.api.moments import revision_of
from memsvc.api.serializers import BlameQuery, DiffQuery, RestoreInput, RevisionsQuery, UndoInput
from memsvc.api.views import TreeView
from memsvc.contract.files import Items, Page
from memsvc.contract.history import EntryVersion, FileDiff, Restored, RevisionRead
from memsvc.tree import reads, services
from tenants.scopes import Scope


class DiffRenderer(BaseRenderer):
    """Chosen by `Accept`, never called: the unified diffs are sent as they are."""

    format = "diff"
    media_type = "text/x-diff"


class RevisionsView(TreeView):
    """The revisions of a tree, newest first."""

    scopes = {"GET": Scope.READ}
    queries = {"GET": RevisionsQuery}

    def get(self, request: Request, tree: str) -> Response:
        params = self.params
        wanted = reads.RevisionFilter(
            actor=params["actor"], path=params["path"], since=params["since"], until=params["until"]
        )
        page = reads.list_revisions(self.access, wanted, cursor=params["cursor"], limit=params["limit"])
        return answer(page, Page[RevisionRead])


class RevisionView(TreeView):
    """One revision, with the files and entries that it changed."""

    scopes = {"GET": Scope.READ}

    def get(self, request: Request, tree: str, number: int) -> Response:
        return answer(reads.get_revision(self.access, number))


class DiffView(TreeView):
    """How files differ between a revision and another one, or now; as one diff that git applies, by `Accept`."""

    scopes = {"GET": Scope.READ}
    queries = {"GET": DiffQuery}
    renderer_classes = (JSONRenderer, DiffRenderer)

    def get(self, request: Request, tree: str, number: int) -> HttpResponse:
        found = reads.diff(self.access, number, self.params["against"], path=self.params["path"])
        if request.accepted_renderer.format == DiffRenderer.format:
            unified = "".join(each.unified for each in found)
            return HttpResponse(unified, content_type=f"{DiffRenderer.media_type}; charset=utf-8")
        return answer(Items(found), Items[FileDiff])


class BlameView(TreeView):
    """Who wrote each line of a text file, and in which revision."""

    scopes = {"GET": Scope.READ}
    queries = {"GET": BlameQuery}

    def get(self, request: Request, tree: str) -> Response:
        revision = revision_of(self.access, self.params)
        return answer(reads.blame(self.access, self.params["path"], revision=revision))


class EntryHistoryView(TreeView):
    """What an entry was from revision to revision, and before it those that it superseded; oldest first."""

    scopes = {"GET": Scope.READ}

    def get(self, request: Request, tree: str, entry_id: str) -> Response:
        versions = reads.entry_history(self.access, entry_id)
        return answer(Items(versions), Items[EntryVersion])


class RestoreView(TreeView):
    """Bring back what a revision had, as a new revision."""

    scopes = {"POST": Scope.WRITE}

    def post(self, request: Request, tree: str, number: int) -> Response:
        return answer(self._restored(number, self.body(RestoreInput)))

    def _restored(self, number: int, data: dict[str, Any]) -> Restored:
        if data["entry"] is not None:
            return services.restore_entry(self.access, data["entry"], number, message=data["message"])
        return services.restore(self.access, number, path=data["path"], message=data["message"])


class UndoView(TreeView):
    """Take back what one revision or one actor did, and keep what others did since."""

    scopes = {"POST": Scope.WRITE}

    def post(self, request: Request, tree: str) -> Response:
        data = self.body(UndoInput)
        result = services.undo(
            self.access,
            revision=data["revision"],
            actor=data["actor"],
            since=data["since"] or 1,
            dry_run=data["dry_run"],
            skip_conflicts=data["skip_conflicts"],
            message=data["message"],
        )
        return answer(result)
