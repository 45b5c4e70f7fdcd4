"""The memory tools of an agent, over `MemoryStore`. Each answers with text and none raises."""

import logging
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from functools import wraps
from typing import Annotated, Final

from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import Field, ValidationError, WithJsonSchema
from pydantic.v1 import ValidationError as ValidationErrorV1

from memsvc.agents.store import MemoryStore
from memsvc.format import (
    Confidence,
    MemoryCategory,
    MemoryHit,
    MemoryKind,
    code_end,
    entry_path,
    sendable,
    summary_after,
)

logger = logging.getLogger(__name__)

MAX_SEARCH_LIMIT: Final = 50
EXCERPT_CHARACTERS: Final = 800
_MOST_DUPLICATES: Final = 50


def build_recall_tools(store: MemoryStore) -> list[BaseTool]:
    """The tools that only read: `memory_index`, `memory_search`, `memory_read` and `memory_get`."""
    recall = _Recall(store)
    return [
        _as_tool(function)
        for function in (recall.memory_index, recall.memory_search, recall.memory_read, recall.memory_get)
    ]


def build_write_tools(
    store: MemoryStore, *, consolidation_model: str | BaseChatModel | None = None
) -> list[BaseTool]:
    """The tools that write: `memory_write` and `memory_update`.

    There is no consolidation yet: naming a model for it raises ValueError.
    """
    if consolidation_model is not None:
        raise ValueError("consolidation is not available yet: leave consolidation_model out")
    writing = _Writing(store)
    return [_as_tool(function) for function in (writing.memory_write, writing.memory_update)]


# The values are in the schema for the model to see, and checked by us: pydantic's own refusal says less.
def _one_of(values: Sequence[str], *, optional: bool = False) -> WithJsonSchema:
    choice = {"type": "string", "enum": list(values)}
    return WithJsonSchema({"anyOf": [choice, {"type": "null"}], "default": None} if optional else choice)


_KINDS: Final = [kind.value for kind in MemoryKind]
_CATEGORIES: Final = [category.value for category in MemoryCategory]
_CONFIDENCES: Final = [confidence.value for confidence in Confidence]

_Kind = Annotated[
    str | None,
    _one_of(_KINDS, optional=True),
    Field(description="Only this kind of memory; leave out for all."),
]
_OptionalCategory = Annotated[
    str | None,
    _one_of(_CATEGORIES, optional=True),
    Field(description="Only this category; leave out for all."),
]
_Confidence = Annotated[
    str,
    _one_of(_CONFIDENCES),
    Field(description="How sure it is: `high` only for the user's own words or something that was verified."),
]
_Source = Annotated[
    str,
    Field(
        description="Where it comes from, honestly: `user_message`, `user_feedback`, `tool_result`, or `agent` for an "
        "inference of your own."
    ),
]


def _member[E: StrEnum](values: type[E], value: str) -> E:
    try:
        return values(value)
    except ValueError as error:
        raise ValueError(f"{error}\n{_use_one_of(values)}") from None


def _use_one_of(values: Iterable[str]) -> str:
    return f"Use one of: {', '.join(values)}."


class _Recall:
    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def memory_index(self, kind: _Kind = None) -> str:
        """See what the memory holds, without loading it. Begin here.

        The index is a router: a line for each file with its description, tags and date of the last change. It tells
        you which file to read or what to search for; the knowledge itself is in the files.
        """
        if kind and kind not in _KINDS:
            raise ValueError(f"unknown memory kind {kind!r}.\n{_use_one_of(_KINDS)}")
        path, rows = self._store.index(MemoryKind(kind) if kind else None)
        if not rows:
            return f"{path} lists no files yet."
        lines = [
            f"- {row.path} — {row.description or 'no description'} "
            f"[tags: {', '.join(row.tags) or '-'}] [updated: {row.updated or '-'}]"
            for row in sorted(rows, key=lambda row: row.path)
        ]
        return "\n".join([f"{path}:", *lines])

    def memory_search(
        self,
        query: Annotated[
            str,
            Field(
                description="What you want to know, in your own words; empty to browse by kind, category or tags."
            ),
        ] = "",
        kind: _Kind = None,
        category: _OptionalCategory = None,
        tags: Annotated[
            list[str] | None, Field(description="Only entries that carry all of these tags.")
        ] = None,
        limit: Annotated[
            int, Field(description=f"How many entries at most, from 1 to {MAX_SEARCH_LIMIT}.")
        ] = 10,
        include_superseded: Annotated[
            bool,
            Field(description="Also entries that a newer one has replaced; for questions about the past."),
        ] = False,
    ) -> str:
        """Find the entries that answer a question, best first, or browse by tags, kind or category, newest first.

        Ask for one thing at a time, with the names and words that matter, and ask in other words before you conclude
        that nothing is known: the first hits are the nearest ones, not always an answer. Each hit shows the entry's id
        and file, its date, confidence, source and tags, the ids of equal entries that it stands for, its summary and
        the beginning of its text.
        """
        hits = self._store.search(
            query,
            kind=_member(MemoryKind, kind) if kind else None,
            category=_member(MemoryCategory, category) if category else None,
            tags=tuple(tags or ()),
            include_superseded=include_superseded,
            limit=max(1, min(limit, MAX_SEARCH_LIMIT)),
            ranked=True,
        )
        if not hits:
            return "No memory entry matched. Memory may simply not hold this yet."
        return "\n\n".join(_hit_text(hit, EXCERPT_CHARACTERS) for hit in hits)

    def memory_read(
        self,
        path: Annotated[
            str, Field(description="The file's path under `/memory/`, as the other tools show it.")
        ],
        offset: Annotated[int, Field(description="The first line to show, counted from 0.")] = 0,
        limit: Annotated[int, Field(description="How many lines at most.")] = 400,
    ) -> str:
        """Read a memory file as it is.

        For when matching entries are not enough and the whole file is needed, such as a procedure. A long file comes
        in parts; the end of each part says how to go on.
        """
        text, next_offset, total = self._store.read_lines(path, max(0, offset), max(1, limit))
        if not text.strip() and total is None:
            return f"{path} is empty."
        if next_offset is None:
            return text
        line_end = "" if text.endswith("\n") else "\n"
        return (
            f"{text}{line_end}\n[Cut after line {next_offset} of {total}. Read on with offset={next_offset}.]"
        )

    def memory_get(
        self, entry_id: Annotated[str, Field(description="The entry's id, as `memory_search` shows it.")]
    ) -> str:
        """Read one entry in full, by its id. Superseded entries can be read too."""
        hit = self._store.get(entry_id)
        return _unknown_entry(entry_id) if hit is None else _hit_text(hit)


class _Writing:
    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def memory_write(
        self,
        category: Annotated[
            str,
            _one_of(_CATEGORIES),
            Field(
                description="What it is. It happened: `events`, `feedbacks`, `errors`. It holds true: `facts`, "
                "`rules`, `preferences`. It is a way to do a task: `procedure`."
            ),
        ],
        content: Annotated[
            str,
            Field(
                description="The entry in markdown. A procedure has the sections When to use, Preconditions, Steps, "
                "Tools required, Known failures."
            ),
        ],
        summary: Annotated[str, Field(description="The entry in one specific line; the index shows it.")],
        tags: Annotated[
            list[str] | None,
            Field(description='A few short labels to find it by, such as ["billing", "acme"].'),
        ] = None,
        source: _Source = "agent",
        confidence: _Confidence = "medium",
        title: Annotated[
            str | None,
            Field(description="Name of the procedure, and of its file. Needed for `procedure` only."),
        ] = None,
    ) -> str:
        """Store a new entry in the memory.

        Search first. If there is an entry on the matter, correct it with `memory_update`: two statements must not stand
        side by side. One idea an entry, so that it can be replaced alone later.
        """
        wanted = _member(MemoryCategory, category)
        shared = wanted is MemoryCategory.PROCEDURE and self._store.has_file(entry_path(wanted, title=title))
        hit = self._store.write(
            wanted,
            content,
            summary=summary,
            tags=tuple(tags or ()),
            source=source,
            confidence=_member(Confidence, confidence),
            title=title,
        )
        notes = [_SHARED_FILE] if shared else []
        return "\n".join([f"Stored {hit.entry.entry_id} in {hit.path}.", *notes, *_notes_on(content)])

    def memory_update(
        self,
        entry_id: Annotated[
            str, Field(description="The id of the entry to replace, as `memory_search` shows it.")
        ],
        content: Annotated[str, Field(description="What is true now, complete, in markdown.")],
        summary: Annotated[
            str, Field(description="The new entry in one line; left out, it is the first line of `content`.")
        ] = "",
        tags: Annotated[
            list[str] | None,
            Field(description="The new labels; leave out to keep the old ones, [] for none."),
        ] = None,
        source: _Source = "agent",
        confidence: _Confidence = "medium",
    ) -> str:
        """Correct an entry by a newer one.

        The new entry supersedes the old one, which no longer shows in searches but stays readable as history. The
        category stays the same. Use this whenever something stored has changed or was wrong.
        """
        old = self._store.get(entry_id)
        if old is None:
            return _unknown_entry(entry_id)
        hit = self._store.write(
            old.entry.category,
            content,
            summary=summary or summary_after(old.entry, content),
            tags=old.entry.tags if tags is None else tuple(tags),
            source=source,
            confidence=_member(Confidence, confidence),
            supersedes=entry_id,
        )
        answer = f"Stored {hit.entry.entry_id} in {hit.path}, superseding {entry_id}."
        return "\n".join([answer, *_notes_on(content)])


_SHARED_FILE: Final = (
    "That file existed already. If this replaces an entry in it, supersede that one with memory_update; if it is "
    "another procedure, give it a title of its own."
)


def _notes_on(content: str) -> list[str]:
    is_open = code_end(b"\n" + content.encode(errors="replace"))
    return ["The code block at its end was not closed; a closing fence was added."] if is_open else []


def _as_tool(function: Callable[..., str]) -> BaseTool:
    @wraps(function)
    def answer(*args: object, **kwargs: object) -> str:
        try:
            return function(*args, **kwargs)
        except ValueError as refusal:
            return sendable(f"Error: {refusal}")
        except Exception:
            logger.exception("%s failed", function.__name__)
            return "Error: the memory could not be used because of an internal fault; try again later."

    tool = StructuredTool.from_function(answer)
    tool.handle_validation_error = _argument_refusal
    return tool


def _argument_refusal(error: ValidationError | ValidationErrorV1) -> str:
    problems = (f"{'.'.join(str(part) for part in found['loc'])}: {found['msg']}" for found in error.errors())
    return sendable(f"Error: {'; '.join(problems)}. Nothing was done; mend the arguments and call again.")


def _unknown_entry(entry_id: str) -> str:
    return f"Error: no memory entry with id {entry_id!r}."


def _hit_text(hit: MemoryHit, characters: int | None = None) -> str:
    entry, duplicates = hit.entry, hit.duplicates
    facts = [
        f"[{entry.entry_id}] {hit.path}",
        entry.category.value,
        entry.created.date().isoformat(),
        f"confidence: {entry.confidence.value}",
        f"source: {entry.source}",
        f"tags: {', '.join(entry.tags) or '-'}",
    ]
    if entry.superseded_by is not None:
        facts.append(f"SUPERSEDED BY {entry.superseded_by}")
    lines = [" | ".join(facts)]
    if duplicates:
        more = len(duplicates) - _MOST_DUPLICATES
        others = f" and {more} more" if more > 0 else ""
        lines.append(f"equal entries: {', '.join(duplicates[:_MOST_DUPLICATES])}{others}")
    if entry.summary:
        lines.append(entry.summary)
    is_long = characters is not None and len(entry.body) > characters
    lines.append(entry.body[:characters] + "…" if is_long else entry.body)
    return "\n".join(lines)
