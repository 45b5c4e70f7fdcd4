from dataclasses import fields
from typing import Any

from django.http import HttpResponse
from rest_framework.request import Request
from rest_framework.response import Response

from memsvc.api.answers import answer, answer_if_changed
from memsvc.api.moments import revision_of
from memsvc.api.preconditions import precondition_of
from memsvc.api.serializers import (
    EntriesQuery,
    EntryInput,
    EpisodesQuery,
    IndexQuery,
    RevisionQuery,
    SuccessorInput,
)
from memsvc.api.views import TreeView
from memsvc.contract.entries import EntryAccesses, EntryRead
from memsvc.contract.files import Items, Page
from memsvc.contract.requests import Status
from memsvc.format import EntryDraft
from memsvc.recall.accesses import accesses_of, get_entry
from memsvc.tree import reads, services
from memsvc.tree.drafts import SuccessorDraft
from memsvc.tree.reads import EntryFilter
from tenants.scopes import Scope

ACTIVE = {Status.ACTIVE: True, Status.SUPERSEDED: False, Status.ALL: None}


class EntriesView(TreeView):
    scopes = {"GET": Scope.READ, "POST": Scope.WRITE}
    queries = {"GET": EntriesQuery}

    def get(self, request: Request, tree: str) -> Response:
        params = self.params
        wanted = filter_of(params | {"tags": params["tag"]}, active=ACTIVE[params["status"]])
        page = reads.list_entries(
            self.access,
            wanted,
            cursor=params["cursor"],
            limit=params["limit"],
            revision=revision_of(self.access, params),
        )
        return answer(page, Page[EntryRead])

    def post(self, request: Request, tree: str) -> Response:
        data = self.body(EntryInput)
        result = services.add_entry(self.access, draft_of(data), message=data["message"])
        return answer(result, status=201)


class EntryView(TreeView):
    scopes = {"GET": Scope.READ, "DELETE": Scope.WRITE}
    queries = {"GET": RevisionQuery}

    def get(self, request: Request, tree: str, entry_id: str) -> HttpResponse:
        found = get_entry(self.access, entry_id, revision=revision_of(self.access, self.params))
        return answer_if_changed(request, found, found.etag)

    def delete(self, request: Request, tree: str, entry_id: str) -> Response:
        result = services.retire_entry(self.access, entry_id, precondition=precondition_of(request))
        return answer(result)


class EntryAccessesView(TreeView):
    """How often an entry was found or read, and when last."""

    scopes = {"GET": Scope.READ}

    def get(self, request: Request, tree: str, entry_id: str) -> Response:
        entry = reads.get_entry(self.access, entry_id).entry
        counted = accesses_of(self.access, [entry.entry_id]).get(entry.entry_id)
        return answer(
            EntryAccesses(
                entry.entry_id, counted.count if counted else 0, counted.last_at if counted else None
            )
        )


class SupersedeView(TreeView):
    """Put an entry in the place of another, which keeps its text and names its successor."""

    scopes = {"POST": Scope.WRITE}

    def post(self, request: Request, tree: str, entry_id: str) -> Response:
        data = self.body(SuccessorInput)
        message = data.pop("message")
        result = services.supersede_entry(self.access, entry_id, SuccessorDraft(**data), message=message)
        return answer(result, status=201)


class EpisodesView(TreeView):
    """The newest episodes, oldest first."""

    scopes = {"GET": Scope.READ}
    queries = {"GET": EpisodesQuery}

    def get(self, request: Request, tree: str) -> Response:
        found = reads.recent_episodes(self.access, since=self.params["since"], limit=self.params["limit"])
        return answer(Items(found), Items[EntryRead])


class IndexView(TreeView):
    scopes = {"GET": Scope.READ}
    queries = {"GET": IndexQuery}

    def get(self, request: Request, tree: str) -> Response:
        revision = revision_of(self.access, self.params)
        return answer(reads.read_index(self.access, self.params["kind"], revision=revision))


def draft_of(data: dict[str, Any]) -> EntryDraft:
    return EntryDraft(**_named_as(EntryDraft, data))


def filter_of(data: dict[str, Any], *, active: bool | None) -> EntryFilter:
    return EntryFilter(**_named_as(EntryFilter, data), active=active)


def _named_as(kind: type[EntryDraft | EntryFilter], data: dict[str, Any]) -> dict[str, Any]:
    """What was sent for the fields of a class of the tree that have the name that they are sent under."""
    return {each.name: data[each.name] for each in fields(kind) if each.name in data}
