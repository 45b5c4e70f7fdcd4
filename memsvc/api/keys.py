from datetime import timedelta
from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memsvc.api.answers import answer, key_info
from memsvc.api.fields import EnumField, FolderField, InstantField, NumberField, TextField
from memsvc.api.serializers import Input, PageQuery
from memsvc.api.views import TenantView
from memsvc.contract.accounts import KeyInfo, NewKey
from memsvc.contract.files import Page
from memsvc.tree.cursors import after_id, cursor_of_id
from memsvc.tree.trees import MAX_NAME_BYTES, tree_for_key
from tenants import keys
from tenants.models import ApiKey
from tenants.scopes import Scope
from tenants.services import MAX_KEY_NAME_BYTES, revoke_key

MAX_OVERLAP_HOURS = 30 * 24


class KeyInput(Input):
    """A key to be made; no scope means that it may do nothing."""

    name = TextField(max_bytes=MAX_KEY_NAME_BYTES)
    scopes = serializers.ListField(child=EnumField(Scope), max_length=len(Scope))
    tree = TextField(max_bytes=MAX_NAME_BYTES, default="")
    path_prefix = FolderField(default="/")
    expires_at = InstantField(default=None)


class RotateInput(Input):
    """For how long the old key works on; 0 ends it at once."""

    overlap_hours = NumberField(minimum=0, maximum=MAX_OVERLAP_HOURS, default=24)


class NewKeyView(TenantView):
    """A view that shows a new key once: nothing that is kept for repeats holds it."""

    def shown_once(self, key: ApiKey, text: str) -> Response:
        return answer(NewKey(key_info(key), text), status=201)

    def storable(self, answer: Any) -> Any:
        return {**answer, "key": None}


class KeysView(NewKeyView):
    """The keys that open nothing that the asking key doesn't open, newest first; ended ones too."""

    scopes = {"GET": Scope.ADMIN, "POST": Scope.ADMIN}
    queries = {"GET": PageQuery}

    def get(self, request: Request) -> Response:
        cursor, limit = self.params["cursor"], self.params["limit"]
        before = None if cursor is None else after_id(cursor)
        rows = keys.keys_seen_by(self.caller.key, before=before, limit=limit + 1)
        more = cursor_of_id(rows[limit - 1].pk) if len(rows) > limit else None
        return answer(Page([*map(key_info, rows[:limit])], more), Page[KeyInfo])

    def post(self, request: Request) -> Response:
        own, data = self.caller.key, self.body(KeyInput)
        keys.require_tree(own, data["tree"])
        tree = tree_for_key(self.caller.tenant, data["tree"], only=own.only_trees)
        made = keys.issue_key(own=own, actor=self.caller.actor, **{**data, "tree": tree})
        return self.shown_once(*made)


class KeyView(TenantView):
    """One key. DELETE revokes it, for good."""

    scopes = {"GET": Scope.ADMIN, "DELETE": Scope.ADMIN}

    def get(self, request: Request, key_id: UUID) -> Response:
        return answer(key_info(keys.key_seen_by(self.caller.key, key_id)))

    def delete(self, request: Request, key_id: UUID) -> Response:
        key = keys.key_seen_by(self.caller.key, key_id)
        revoke_key(key=key, actor=self.caller.actor)
        return answer(key_info(key))


class RotateKeyView(NewKeyView):
    """A new key with the rights of another, which ends after the overlap."""

    scopes = {"POST": Scope.ADMIN}

    def post(self, request: Request, key_id: UUID) -> Response:
        overlap = timedelta(hours=self.body(RotateInput)["overlap_hours"])
        caller = self.caller
        made = keys.rotate_key(own=caller.key, actor=caller.actor, key_id=key_id, overlap=overlap)
        return self.shown_once(*made)
