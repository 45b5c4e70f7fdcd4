"""Blocks for a prompt, as text or as chat messages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from memsvc.contract.files import ETag
from memsvc.contract.wire import FORMS, Form, Json, Names, Schema, closed, form_of, object_form


class ContextFormat(StrEnum):
    MARKDOWN = "markdown"
    XML = "xml"
    MESSAGES = "messages"
    PYDANTIC_DEEP = "pydantic-deep"
    HARNESS = "harness"


# Whose message a context is, where it is sent as one.
ROLES: Final[Mapping[str, str]] = {ContextFormat.MESSAGES: "system", ContextFormat.HARNESS: "user"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """A block for a system prompt; `entries` are the ids of what is in it, in its order.

    `left_out` counts what had no room there: entries, in a notebook lines (and topic files). `duplicates` has for an
    entry in the block the ids of equal ones that it stands for. `tokens` are never more than `budget`. `content` is
    the text in every format, for that of messages the text of the one message. `etag` changes when the block does,
    whatever else happens in the tree.
    """

    tokens: int
    budget: int
    entries: Sequence[str]
    duplicates: Mapping[str, Sequence[str]] = field(default_factory=dict)
    left_out: int
    revision: int
    format: str
    content: str
    etag: ETag = None

    @property
    def messages(self) -> list[dict[str, str]]:
        """The block as chat messages: one of the system (a harness's: of the user), or none without content."""
        role = ROLES.get(self.format, "system")
        return [{"role": role, "content": self.content}] if self.content else []


_AS_TEXT: Final = object_form(Context)
_MESSAGES: Final = form_of(Sequence[Mapping[str, str]])
_TEXT: Final[Schema] = {"type": "string"}


def _describe(names: Names) -> Schema:
    common = _AS_TEXT.describe(names)["properties"]
    del common["format"], common["content"]
    formats = [
        closed(
            **common,
            format={**_TEXT, "enum": [name]},
            messages={"type": "array", "items": closed(role={**_TEXT, "enum": [role]}, content=_TEXT)},
        )
        for name, role in ROLES.items()
    ]
    others = [each.value for each in ContextFormat if each not in ROLES]
    return {"anyOf": [*formats, closed(**common, format={**_TEXT, "enum": others}, content=_TEXT)]}


def _read(data: Json) -> Context:
    if isinstance(data, dict) and isinstance(messages := data.get("messages"), list):
        texts = [message.get("content", "") for message in _MESSAGES.read(messages)]
        data = {**data, "content": "\n\n".join(texts)}
    found: Context = _AS_TEXT.read(data)
    return found


def _write(found: Context) -> Json:
    assert _AS_TEXT.write
    sent = _AS_TEXT.write(found)
    block = {"content": sent.pop("content")}
    if found.format in ROLES:
        block = {"messages": found.messages}
    return {"format": sent.pop("format"), **block, **sent}


FORMS[Context] = Form(_describe, _read, _write)
