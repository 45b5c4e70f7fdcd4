"""What all views share: who asks, what they may do, and what they sent."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, cast
from uuid import UUID

from django.conf import settings
from django.http.request import HttpHeaders
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import MethodNotAllowed
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from memsvc.api import idempotency, problems
from memsvc.api.gate import unmarked
from memsvc.api.parsers import StrictJSONParser, require_plain_body
from memsvc.api.serializers import Input, NoQuery, Query
from memsvc.contract.errors import ErrorCode, Refused
from memsvc.contract.requests import MAX_RUN_ID_CHARACTERS, RUN_ID_HEADER, RUN_ID_PATTERN, run_id_in_header
from memsvc.tree.access import Access
from memsvc.tree.models import Tree
from memsvc.tree.trees import tree_of
from tenants.audit import REFUSALS, route_of
from tenants.authentication import Caller, KeyAuthentication
from tenants.scopes import Scope

# What every method that changes something takes beside its body: the pattern of a value, and what it does.
WRITE_HEADERS: Mapping[str, tuple[str, str]] = {
    idempotency.HEADER: (
        idempotency.PATTERN,
        "Makes a repeat of this very request answer what the first one did, and do nothing.",
    ),
    RUN_ID_HEADER: (
        RUN_ID_PATTERN,
        f"Which run of an agent asks, for the history: up to {MAX_RUN_ID_CHARACTERS} characters. A blank, a percent "
        "sign and what is not ASCII come percent-encoded, in UTF-8.",
    ),
}
# That a key reached for what it may not have, or for what is not its tenant's. A file or an entry that isn't there is
# everyday life of an agent.
AUDITED_REFUSALS = frozenset(
    {
        ErrorCode.MISSING_SCOPE,
        ErrorCode.FORBIDDEN,
        ErrorCode.READ_ONLY,
        ErrorCode.TREE_NOT_FOUND,
        ErrorCode.MEMORY_STORE_NOT_FOUND,
        ErrorCode.KEY_NOT_FOUND,
    }
)
_RUN_ID = HttpHeaders.to_wsgi_name(RUN_ID_HEADER)
METHODS = ("get", "post", "put", "patch", "delete")


class TenantView(APIView):
    """A view that only a tenant's key opens.

    `scopes` names for each method the scope that a key needs; a view that leaves one out can't be made, so an
    endpoint that nobody thought about does not start. A method that needs more than to read takes an
    `Idempotency-Key`, except GET. `queries` names what a method takes in its URL; nothing where it has no entry.
    """

    scopes: ClassVar[Mapping[str, Scope]] = {}
    queries: ClassVar[Mapping[str, type[Query]]] = {}
    # Whether a write may work for longer between two statements than the database lets a transaction be idle.
    long_running: ClassVar[bool] = False

    authentication_classes: Sequence[type[BaseAuthentication]] = (KeyAuthentication,)
    permission_classes = ()
    # In which shape its errors are answered: of a component of the description, and of which type.
    error_shape: ClassVar[tuple[str, str]] = ("Problem", problems.MEDIA_TYPE)

    parser_classes: Sequence[type[BaseParser]] = (StrictJSONParser,)
    renderer_classes: Sequence[type[BaseRenderer]] = (JSONRenderer,)
    http_method_names = (*METHODS, "head")

    params: dict[str, Any]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        methods = {method.upper() for method in METHODS if hasattr(cls, method)}
        if methods != set(cls.scopes):
            raise TypeError(
                f"{cls.__name__} handles {sorted(methods)}, but declares scopes for {sorted(cls.scopes)}"
            )
        for method, scope in cls.scopes.items():
            if method != "GET" and scope is not Scope.READ and method.lower() in vars(cls):
                setattr(cls, method.lower(), idempotency.done_once(vars(cls)[method.lower()]))

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        method = self._method()
        self._require(method)
        require_plain_body(request.META, self.max_body_bytes)
        self.params = self.queries.get(method, NoQuery).checked(request.query_params)

    @property
    def max_body_bytes(self) -> int:
        return int(settings.MAX_BODY_BYTES)

    def _method(self) -> str:
        method = self.request.method or ""
        return "GET" if method == "HEAD" else method

    def _require(self, method: str) -> None:
        scope = self.scopes.get(method)
        if scope is None:
            raise MethodNotAllowed(method)
        if scope not in self.caller.scopes:
            raise Refused(f"This needs a key with the scope '{scope}'.", code=ErrorCode.MISSING_SCOPE)

    @cached_property
    def caller(self) -> Caller:
        """Who asks, in the run that the request names."""
        known = cast(Caller, self.request.auth)
        run_id = run_id_in_header(self.request.META.get(_RUN_ID, ""))
        return replace(known, actor=replace(known.actor, run_id=run_id)) if run_id else known

    def body(self, shape: type[Input]) -> dict[str, Any]:
        """The checked fields of the JSON body."""
        return shape.checked(self.request.data)

    def tree_in_answer(self) -> UUID | None:
        """The tree whose content an answer may hold."""
        return None

    def storable(self, answer: Any) -> Any:
        """What may be kept of an answer, for repeats of the request."""
        return answer

    def get_exception_handler(self) -> Any:
        return problems.handle

    def handle_exception(self, exc: Exception) -> Response:
        # In a batch it is one of several that was refused.
        code = getattr(getattr(exc, "cause", exc), "code", None)
        if code in AUDITED_REFUSALS and self.request.auth is not None:
            REFUSALS.note_refusal(self.caller.key, self.caller.actor, route_of(self.request), str(code))
        return super().handle_exception(exc)

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:
        response = super().finalize_response(request, response, *args, **kwargs)
        # A cache may keep an answer for the one who asked, if it asks each time whether it still holds.
        response.headers.setdefault("Cache-Control", "private, no-cache")
        return response


class TreeView(TenantView):
    """A view of one tree: the one that the URL names, as far as the key opens it."""

    @cached_property
    def access(self) -> Access:
        name, only = unmarked(self.kwargs["tree"]), self.caller.key.only_trees
        return access_of(self.caller, tree_of(self.caller.tenant, name, only=only))

    def tree_in_answer(self) -> UUID | None:
        return self.access.tree.pk


def access_of(caller: Caller, tree: Tree) -> Access:
    return Access(
        tree=tree,
        actor=caller.actor,
        prefix=caller.key.path_prefix,
        writable=Scope.WRITE in caller.scopes,
    )
