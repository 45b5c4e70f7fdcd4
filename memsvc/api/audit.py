from django.http import StreamingHttpResponse
from rest_framework.request import Request
from rest_framework.response import Response

from memsvc.api.answers import answer
from memsvc.api.serializers import AuditQuery
from memsvc.api.transfer import OneKind
from memsvc.api.views import TenantView
from memsvc.contract.audit import AuditEventRead
from memsvc.contract.files import Page
from memsvc.contract.requests import AuditRequest
from memsvc.contract.wire import to_json
from memsvc.transfer.interchange import json_line
from memsvc.tree.audit import audit_chains, audit_page
from memsvc.tree.errors import Forbidden
from tenants.authentication import Caller
from tenants.scopes import Scope


class AuditView(TenantView):
    """What was done to the tenant's memory, keys and people, and what was refused, newest first.

    A key that is limited to a tree sees what was about that tree. Refusals are told a minute late, those that are alike
    together, and those of a process that was killed in that minute are not.
    """

    scopes = {"GET": Scope.ADMIN}
    queries = {"GET": AuditQuery}

    def get(self, request: Request) -> Response:
        require_no_folder(self.caller)
        wanted = AuditRequest(**self.params)
        page = audit_page(
            self.caller.tenant,
            wanted,
            only=self.caller.key.only_trees,
            cursor=wanted.cursor,
            limit=self.params["limit"],
        )
        return answer(page, Page[AuditEventRead])


class AuditExportView(TenantView):
    """The whole audit as JSON Lines, chain by chain: `python -m memsvc.client.audit` says whether it is whole.

    A key that is limited to a tree gets the chain of that tree.
    """

    scopes = {"GET": Scope.ADMIN}
    content_negotiation_class = OneKind

    def get(self, request: Request) -> StreamingHttpResponse:
        require_no_folder(self.caller)
        events = audit_chains(self.caller.tenant, only=self.caller.key.only_trees)
        return StreamingHttpResponse(
            (json_line(to_json(event)) for event in events),
            content_type="application/jsonl",
            headers={"Content-Disposition": 'attachment; filename="audit.jsonl"'},
        )


def require_no_folder(caller: Caller) -> None:
    """Refuse a key that sees only a folder: events have no paths."""
    if caller.key.path_prefix != "/":
        raise Forbidden("/", caller.key.path_prefix)
