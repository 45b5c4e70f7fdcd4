from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memsvc.api.answers import answer
from memsvc.api.entries import draft_of, named_as
from memsvc.api.fields import FlagField, PathField, TextField
from memsvc.api.preconditions import entity_tag
from memsvc.api.serializers import BatchInput, EntryFields, FileContent, Input, MoveFields, content_field
from memsvc.api.views import TreeView
from memsvc.contract.files import BatchResult
from memsvc.format import FormatError
from memsvc.tree import operations, services
from memsvc.tree.commands import Precondition
from memsvc.tree.errors import BatchFailed, TooLarge
from memsvc.tree.operations import Operation
from memsvc.tree.results import OperationResult
from tenants.scopes import Scope

type Data = dict[str, Any]


class OperationInput(Input):
    """What all operations have; an operation has no message of its own."""

    op = TextField()
    if_match = TextField(default=None)

    def validate(self, attrs: Data) -> Data:
        attrs = super().validate(attrs)
        if_match, create_only = attrs["if_match"], attrs.get("create_only", False)
        if if_match is not None or create_only:
            tag = None if if_match is None else entity_tag(if_match)
            attrs["precondition"] = Precondition(if_match=tag, if_none_match_any=create_only)
        return attrs


class WriteInput(OperationInput, FileContent):
    path = PathField()
    create_only = FlagField(default=False)


class EditInput(OperationInput):
    path = PathField()
    old_string = content_field()
    new_string = content_field()
    replace_all = FlagField(default=False)


class AppendInput(OperationInput):
    path = PathField()
    text = content_field()


class DeleteInput(OperationInput):
    path = PathField()
    recursive = FlagField(default=False)


class MoveInput(MoveFields):
    op = TextField()


class AddEntryInput(EntryFields):
    op = TextField()

    def validate(self, attrs: Data) -> Data:
        return {"draft": draft_of(attrs)}


class RetireEntryInput(OperationInput):
    id = TextField(source="entry_id")


OPERATIONS: dict[str, tuple[type[Input], type[Operation]]] = {
    "write": (WriteInput, operations.WriteFile),
    "edit": (EditInput, operations.EditFile),
    "append": (AppendInput, operations.AppendFile),
    "delete": (DeleteInput, operations.DeletePath),
    "move": (MoveInput, operations.MovePath),
    "add_entry": (AddEntryInput, operations.AddEntry),
    "retire_entry": (RetireEntryInput, operations.RetireEntry),
}


class BatchView(TreeView):
    """Many changes as one revision, all of them or none; an error names the operation by its place, from 0."""

    scopes = {"POST": Scope.WRITE}

    def post(self, request: Request, tree: str) -> Response:
        data = self.body(BatchInput)
        wanted = data["operations"]
        if len(wanted) > services.MAX_BATCH:
            raise TooLarge(
                f"a batch may hold {services.MAX_BATCH} operations, not {len(wanted)}; send several"
            )
        steps = [operation_at(index, given) for index, given in enumerate(wanted)]
        result = services.batch(self.access, steps, message=data["message"])
        return answer(result, BatchResult[OperationResult])


def operation_at(index: int, given: Data) -> Operation:
    try:
        return operation_of(given)
    except FormatError as error:
        raise BatchFailed(index, error) from error
    except serializers.ValidationError as error:
        raise serializers.ValidationError({f"operations[{index}]": error.detail}) from error


def operation_of(given: Data) -> Operation:
    known = OPERATIONS.get(str(given.get("op")))
    if known is None:
        message = f"This must be one of: {', '.join(OPERATIONS)}."
        raise serializers.ValidationError({"op": [message]}, code="invalid_choice")
    shape, kind = known
    return kind(**named_as(kind, shape.checked(given)))
