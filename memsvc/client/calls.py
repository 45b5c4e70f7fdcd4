"""What can be asked of a server, each thing once: how it is sent, and how its answer is read. Needs no Django.

`memsvc.client.http` makes two clients of it, one for threads and one for event loops.
"""

import base64
import json
import sys
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Any, Concatenate, Final, Literal, Protocol, Unpack, cast, overload
from urllib.parse import quote

import httpx

from memsvc.client.connection import (
    AsyncConnection,
    Connection,
    RequestParts,
    Steps,
    json_object,
    segment,
)
from memsvc.client.errors import InvalidRequest, UnexpectedAnswer
from memsvc.contract.accounts import (
    DayUsage,
    KeyInfo,
    Me,
    NewKey,
    Scaffolded,
    TreeDetail,
    TreeInfo,
    Usage,
    UsagePage,
)
from memsvc.contract.audit import AuditEventRead
from memsvc.contract.context import Context
from memsvc.contract.entries import (
    EntryAccesses,
    EntryRead,
    EntryRetired,
    EntryWritten,
    HitsPage,
    RouterIndex,
)
from memsvc.contract.erasures import Erased, ErasureCertificate, ErasureKind, ErasureRequest
from memsvc.contract.errors import ErrorCode
from memsvc.contract.files import (
    BatchResult,
    Deleted,
    Downloaded,
    Edited,
    FileBytes,
    FoundFiles,
    Items,
    Listed,
    Matches,
    Moved,
    Page,
    Uploaded,
    Window,
    Written,
)
from memsvc.contract.history import (
    Blame,
    EntryVersion,
    FileDiff,
    Restored,
    RevisionDetail,
    RevisionRead,
    Undone,
)
from memsvc.contract.imports import ImportReport
from memsvc.contract.requests import AsOf as AsOf
from memsvc.contract.requests import (
    AuditRequest,
    EntriesRequest,
    EntryRequest,
    RevisionsRequest,
    SearchRequest,
    SuccessorRequest,
    UndoRequest,
    given,
)
from memsvc.contract.wire import from_json
from memsvc.format.layout import MemoryKind
from memsvc.format.paths import canonical_folder, canonical_path
from memsvc.format.refusals import FormatError
from memsvc.format.text import checked_text

type ContextFormat = Literal["markdown", "xml", "messages", "harness"]
type ImportFormat = Literal["zip", "jsonl", "pydantic-deep", "mneme"]
type ErasureKindName = Literal["tree", "path", "entry", "run", "source", "actor"]
type OnConflict = Literal["keep", "take", "both"]
# What the operations of a batch answer, as it came.
type BatchOfAny = BatchResult[Mapping[str, object]]

_RAW: Final = "application/octet-stream"
# Thousands of files are one transaction, and the answer comes when it has ended.
_IMPORT_SECONDS: Final = 600.0
_LARGEST_PAGE: Final = 1000


class Method[**Parameters, Answer](Protocol):
    """A call as type checkers see it: a plain method of one client, and one to await of the other."""

    @overload
    def __get__(
        self, client: "Calls[Connection]", owner: type[object] | None = None
    ) -> Callable[Parameters, Answer]: ...
    @overload
    def __get__(
        self, client: "Calls[AsyncConnection]", owner: type[object] | None = None
    ) -> Callable[Parameters, Coroutine[Any, Any, Answer]]: ...
    @overload
    def __get__(
        self, client: None, owner: "type[Calls[Connection]]"
    ) -> Callable[Concatenate[Any, Parameters], Answer]: ...
    @overload
    def __get__(
        self, client: None, owner: "type[Calls[AsyncConnection]]"
    ) -> Callable[Concatenate[Any, Parameters], Coroutine[Any, Any, Answer]]: ...


def call[**Parameters, Answer](
    steps: Callable[Concatenate[Any, Parameters], Steps[Answer]],
) -> Method[Parameters, Answer]:
    """Makes what says how to do something a method that does it, on the connection of its client."""

    @wraps(steps)
    def method(client: "Calls[Any]", *args: Parameters.args, **kwargs: Parameters.kwargs) -> Any:
        return client._connection.run(steps, client, *args, **kwargs)

    return cast(Method[Parameters, Answer], method)


def asking[**Parameters, Request, Answer](
    request: Callable[Parameters, Request],
) -> Callable[[Callable[[Any, Request], Steps[Answer]]], Method[Parameters, Answer]]:
    """A `call` whose parameters are the fields of a request of the contract."""

    def asked(steps: Callable[[Any, Request], Steps[Answer]]) -> Method[Parameters, Answer]:
        @wraps(steps)
        def method(client: "Calls[Any]", *args: Parameters.args, **kwargs: Parameters.kwargs) -> Any:
            return client._connection.run(steps, client, request(*args, **kwargs))

        own, fields = signature(steps), signature(request)
        client = next(iter(own.parameters.values()))
        vars(method)["__signature__"] = own.replace(parameters=[client, *fields.parameters.values()])
        return cast(Method[Parameters, Answer], method)

    return asked


class Calls[Conn: (Connection, AsyncConnection)]:
    """Everything that can be asked of a server, for both clients.

    Each public method says how its call is made: `@call` turns it into one that answers, or that is awaited.
    """

    def __init__(self, connection: Conn, tree: str) -> None:
        self.tree: Final = tree
        self._connection: Final[Conn] = connection
        self._at: Final = f"/trees/{segment(tree)}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._connection.base_url!r}, tree={self.tree!r})"

    @call
    def me(self) -> Steps[Me]:
        """Whose key this is, and what it may do."""
        return self._ask("GET", "/me", Me)

    # Trees

    @call
    def list_trees(self) -> Steps[list[TreeInfo]]:
        """The tenant's trees that this key opens, by name, all pages of them."""
        return self._every("/trees", Page[TreeInfo])

    @call
    def create_tree(
        self, name: str, *, description: str = "", language: str | None = None
    ) -> Steps[TreeInfo]:
        """Make a new, empty tree; Conflict when there is one of that name. This client stays on its own tree.

        In its `language` ("english" by default; "simple" for none) words are stemmed when entries are searched.
        """
        body = _given({"name": name, "description": description, "language": language})
        return self._ask("POST", "/trees", TreeInfo, body=body)

    @call
    def describe(self) -> Steps[TreeDetail]:
        """This client's tree: what it is and how much is in it."""
        return self._ask("GET", self._at, TreeDetail)

    @call
    def set_description(self, description: str) -> Steps[TreeInfo]:
        return self._ask("PATCH", self._at, TreeInfo, body={"description": description})

    @call
    def set_language(self, language: str) -> Steps[TreeInfo]:
        """Let the tree's entries be found by the words of another language."""
        return self._ask("PATCH", self._at, TreeInfo, body={"language": language})

    @call
    def clone_tree(self, name: str, *, revision: int | None = None) -> Steps[TreeInfo]:
        """Make a new tree with the files of this one, as of a revision. This client stays on its own tree."""
        body = _given({"name": name, "revision": revision})
        return self._ask("POST", f"{self._at}:clone", TreeInfo, body=body, patience=_IMPORT_SECONDS)

    @call
    def archive_tree(self) -> Steps[TreeInfo]:
        """Make this client's tree read-only, for good."""
        return self._ask("POST", f"{self._at}:archive", TreeInfo, body={})

    @call
    def delete_tree(self) -> Steps[None]:
        """Delete this client's tree with its whole history. Nothing can bring it back."""
        yield from self._connection.send(
            "DELETE", self._at, query={"confirm": self.tree}, patience=_IMPORT_SECONDS
        )

    # Keys: these need one with the scope "admin"

    @call
    def list_keys(self) -> Steps[list[KeyInfo]]:
        """The keys that open nothing that this one doesn't open, newest first, all pages of them; ended ones too."""
        return self._every("/keys", Page[KeyInfo])

    @call
    def get_key(self, key_id: str) -> Steps[KeyInfo]:
        return self._ask("GET", _key(key_id), KeyInfo)

    @call
    def create_key(
        self,
        name: str,
        scopes: Collection[str],
        *,
        tree: str | None = None,
        path_prefix: str = "/",
        expires_at: datetime | None = None,
    ) -> Steps[NewKey]:
        """Make a key, which can do no more than this one; Forbidden otherwise. Its text is never shown again."""
        body = {
            "name": name,
            "scopes": list(scopes),
            "tree": tree,
            "path_prefix": path_prefix,
            "expires_at": _time(expires_at),
        }
        return self._ask("POST", "/keys", NewKey, body=_given(body))

    @call
    def rotate_key(self, key_id: str, *, overlap_hours: int = 24) -> Steps[NewKey]:
        """Make a new key in the place of another, which works on for the overlap; 0 ends it at once."""
        body = {"overlap_hours": overlap_hours}
        return self._ask("POST", f"{_key(key_id)}:rotate", NewKey, body=body)

    @call
    def revoke_key(self, key_id: str) -> Steps[KeyInfo]:
        """Shut a key out, for good."""
        return self._ask("DELETE", _key(key_id), KeyInfo)

    @call
    def usage(self, *, since: date | None = None, until: date | None = None) -> Steps[Usage]:
        """What the tenant stores, and the requests by day (UTC) and key, from one day to another, both included.

        Needs a key with the scope "admin" that opens every tree. Requests are counted a minute late.
        """
        query: dict[str, object] = {"since": since, "until": until, "limit": _LARGEST_PAGE}
        requests: list[DayUsage] = []
        while True:
            page: UsagePage = yield from self._ask("GET", "/usage", UsagePage, query=query)
            requests += page.items
            if page.next is None:
                stored = page.stored
                return Usage(stored.trees, stored.files, stored.entries, stored.bytes, requests)
            query = {**query, "cursor": page.next}

    @asking(AuditRequest)
    def list_audit(self, asked: AuditRequest) -> Steps[Page[AuditEventRead]]:
        """One page of what was done to the tenant's memory, keys and people, and of what was refused, newest first."""
        return self._ask("GET", "/audit", Page[AuditEventRead], query=given(asked))

    # Erasing: this needs one with the scope "admin", too

    @call
    def erase(
        self, kind: ErasureKindName, value: str, *, dry_run: bool = False, erase_paths: bool = False
    ) -> Steps[Erased]:
        """Take something out of this client's tree for good, with its history and all that was made of it.

        `value` is the tree's name, a path, an entry's id, a run's id, a source, or an actor's id. The answer lists each
        place, with `dry_run` without changing anything. With `erase_paths` the paths of files that go leave the
        history too. Copies elsewhere stay: other trees, exports, backups.
        """
        asked = ErasureRequest(
            tree=self.tree, kind=ErasureKind(kind), value=value, dry_run=dry_run, erase_paths=erase_paths
        )
        return self._ask("POST", "/erasures", Erased, body=given(asked), patience=_IMPORT_SECONDS)

    @call
    def list_erasures(self) -> Steps[list[ErasureCertificate]]:
        """What was erased of all trees, newest first, all pages: of what kind, when, by whom."""
        return self._every("/erasures", Page[ErasureCertificate])

    # Files

    @call
    def list_files(
        self,
        prefix: str = "/",
        *,
        cursor: str | None = None,
        limit: int | None = None,
        revision: AsOf | None = None,
    ) -> Steps[Page[Listed]]:
        """One page of all files below a folder, by path."""
        return self._listing(prefix, depth=None, cursor=cursor, limit=limit, revision=revision)

    @call
    def list_folder(self, folder: str = "/", *, revision: AsOf | None = None) -> Steps[list[Listed]]:
        """The files and folders directly in a folder, in code-point order."""
        return _all_items(
            lambda cursor: self._listing(folder, depth=1, cursor=cursor, limit=None, revision=revision)
        )

    @call
    def read_lines(
        self, path: str, *, offset: int = 0, limit: int = 2000, revision: AsOf | None = None
    ) -> Steps[Window]:
        """At most `limit` lines of a text file from line `offset` (0 is the first); other files come whole."""
        response = yield from self._connection.send(
            "GET",
            self._file(path),
            query={"offset": offset, "limit": limit, **_as_of(revision)},
        )
        return _parsed(response, Window)

    @call
    def read_bytes(self, path: str, *, revision: AsOf | None = None) -> Steps[FileBytes]:
        """A whole file, byte for byte."""
        return self._bytes(path, revision)

    @call
    def read_bytes_if_changed(self, path: str, etag: str) -> Steps[FileBytes | None]:
        """A whole file, or None while it is still the one that `etag` came with."""
        headers = {"Accept": _RAW, "If-None-Match": f'"{etag}"'}
        response = yield from self._connection.send("GET", self._file(path), headers=headers)
        if response.status_code == httpx.codes.NOT_MODIFIED:
            return None
        return FileBytes(_canonical(path), response.content, _etag(response))

    @call
    def read_text(self, path: str, *, revision: AsOf | None = None) -> Steps[str]:
        """A whole text file with its own line ends; InvalidRequest (`not_text`) when it isn't UTF-8."""
        found = yield from self._bytes(path, revision)
        try:
            return found.data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InvalidRequest(
                f"'{path}' is no UTF-8 text; read its bytes instead.", code=ErrorCode.NOT_TEXT
            ) from error

    @call
    def write_file(
        self,
        path: str,
        content: str | bytes | Path,
        *,
        if_match: str | None = None,
        create_only: bool = False,
        message: str = "",
    ) -> Steps[Written]:
        """Create or replace a file. With `create_only`, PreconditionFailed when it is there already.

        A Path names a file on this machine, which is sent in pieces; whole in memory only when there is a `message`.
        """
        data = _content(content)
        headers = _preconditions(if_match, create_only=create_only)
        if message:
            whole = data.read_bytes() if isinstance(data, Path) else data
            body = {"content": _base64(whole), "encoding": "base64", "message": message}
            response = yield from self._connection.send("PUT", self._file(path), body=body, headers=headers)
        else:
            headers["Content-Type"] = _RAW
            response = yield from self._connection.send(
                "PUT", self._file(path), content=data, headers=headers
            )
        return _parsed(response, Written)

    @call
    def edit_file(
        self,
        path: str,
        old_string: str,
        new_string: str,
        *,
        replace_all: bool = False,
        if_match: str | None = None,
        message: str = "",
    ) -> Steps[Edited]:
        """Replace the one exact occurrence of `old_string` (every one with `replace_all`); else EditRefused."""
        body = {"old_string": old_string, "new_string": new_string, "replace_all": replace_all}
        return self._patch(path, body, Edited, if_match=if_match, message=message)

    @call
    def append_file(
        self, path: str, text: str, *, if_match: str | None = None, message: str = ""
    ) -> Steps[Edited]:
        """Add text to the end of a file, as it is; the file is made when it isn't there."""
        added = yield from self._patch(path, {"append": text}, Written, if_match=if_match, message=message)
        return Edited(added.path, added.revision, 0, added.size, added.etag, warnings=added.warnings)

    @call
    def delete(self, path: str, *, recursive: bool = False, if_match: str | None = None) -> Steps[Deleted]:
        """Delete a file; with `recursive` also a folder with everything in it."""
        return self._ask(
            "DELETE",
            self._file(path),
            Deleted,
            query={"recursive": recursive or None},
            headers=_preconditions(if_match),
        )

    @call
    def move(
        self, source: str, destination: str, *, overwrite: bool = False, message: str = ""
    ) -> Steps[Moved]:
        """Rename a file or a folder with everything in it."""
        body = {"source": _canonical(source), "destination": _canonical(destination), "overwrite": overwrite}
        return self._ask("POST", f"{self._at}/files:move", Moved, body=_with_message(body, message))

    @call
    def grep(
        self,
        pattern: str,
        *,
        path: str = "/",
        glob: str | None = None,
        max_count: int | None = None,
        revision: AsOf | None = None,
    ) -> Steps[Matches]:
        """The lines that hold `pattern`, literally, in files by path; `truncated` when there are more."""
        body = {"pattern": pattern, "path": _folder(path), "glob": glob, "max_count": max_count}
        return self._question("files:grep", Matches, body, revision=revision)

    @call
    def glob(self, pattern: str, *, path: str = "/", revision: AsOf | None = None) -> Steps[FoundFiles]:
        """The files below `path` whose names match `pattern`, by path."""
        body = {"pattern": pattern, "path": _folder(path)}
        return self._question("files:glob", FoundFiles, body, revision=revision)

    @call
    def upload_files(self, files: Sequence[tuple[str, bytes]]) -> Steps[list[Uploaded]]:
        """Write many files in one revision; each has its own verdict, in order, and a bad one stops no other."""
        items = [{"path": path, "content": _base64(content)} for path, content in files]
        answer: list[Uploaded] = yield from self._ask_all(
            "POST",
            f"{self._at}/files:upload",
            Items[Uploaded],
            body={"files": items},
        )
        return _one_for_each(answer, items)

    @call
    def download_files(self, paths: Sequence[str]) -> Steps[list[Downloaded]]:
        """Many whole files, each with its own verdict, in order."""
        answer: list[Downloaded] = yield from self._ask_all(
            "POST", f"{self._at}/files:download", Items[Downloaded], body={"paths": list(paths)}
        )
        return _one_for_each(answer, paths)

    # Entries

    @call
    def scaffold(self) -> Steps[list[str]]:
        """Make what is missing of an empty memory: indexes and headings. The paths that were made."""
        made: Scaffolded = yield from self._ask("POST", f"{self._at}:scaffold", Scaffolded)
        return [*made.created]

    @asking(EntriesRequest)
    def list_entries(self, asked: EntriesRequest) -> Steps[Page[EntryRead]]:
        """One page of the entries that pass all the filters, newest first.

        `metadata` has for each name a value, or an object of operators: `{"project": "apollo", "n": {"gte": 3}}`.
        """
        query = given(asked) | _as_of(asked.revision)
        if "metadata" in query:
            query["metadata"] = json.dumps(query["metadata"])
        return self._ask("GET", f"{self._at}/entries", Page[EntryRead], query=query)

    @call
    def get_entry(self, entry_id: str, *, revision: AsOf | None = None) -> Steps[EntryRead]:
        """One entry by its id; NotFound when there is none."""
        if not entry_id:
            raise InvalidRequest("An entry id is needed.")
        return self._ask("GET", self._entry(entry_id), EntryRead, query=_as_of(revision))

    @asking(EntryRequest)
    def add_entry(self, asked: EntryRequest) -> Steps[EntryWritten]:
        """Store an entry in the file that its category has; with `supersedes`, retire that one with it.

        `metadata` are further keys of its frontmatter: names with text, a number, a boolean, or a list of these.
        Where it is None, and where `expires_at` is not given, they are those of the entry that is superseded. A
        `summary` of None is none, or the first line of the body where the superseded entry has a summary.
        """
        return self._ask("POST", f"{self._at}/entries", EntryWritten, body=given(asked))

    @asking(SuccessorRequest)
    def supersede_entry(self, asked: SuccessorRequest) -> Steps[EntryWritten]:
        """Put a new entry in an entry's place. Category, tags and metadata that are None are kept, and so is an
        expiry that is not given; None of it stays. A summary that is None is made from the body where the old one
        has any. A procedure stays in its file unless it gets a `title`.
        """
        at = f"{self._entry(asked.entry_id)}:supersede"
        return self._ask("POST", at, EntryWritten, body=given(asked))

    @call
    def retire_entry(self, entry_id: str, *, if_match: str | None = None) -> Steps[EntryRetired]:
        """Take an entry out of its file; the history keeps it."""
        return self._ask("DELETE", self._entry(entry_id), EntryRetired, headers=_preconditions(if_match))

    @asking(SearchRequest)
    def search(self, asked: SearchRequest) -> Steps[HitsPage]:
        """One page of the entries that answer `query`, best first, by words and by meaning ("hybrid").

        Also by one of them ("lexical", "semantic"); or those that hold all the words, or the text as it stands,
        newest first ("words", "substring"). An empty query browses. `recency` lets newer entries of equal worth come
        first; `timezone` is where the days of a question about "yesterday" begin. With the `scoring` "mneme" the hits
        are ranked as Mneme ranks them, by the three arguments behind it. `metadata` is as for `list_entries`.
        """
        return self._question("search", HitsPage, given(asked), revision=asked.revision)

    @call
    def recent_episodes(
        self, *, since: datetime | None = None, limit: int | None = None
    ) -> Steps[list[EntryRead]]:
        """The newest `limit` active episodes, oldest first."""
        return self._ask_all(
            "GET",
            f"{self._at}/episodes",
            Items[EntryRead],
            query={"since": _utc(since), "limit": limit},
        )

    @call
    def read_index(
        self, kind: MemoryKind | None = None, *, revision: AsOf | None = None
    ) -> Steps[RouterIndex]:
        """The router index of a kind, or the root one."""
        query = {"kind": kind, **_as_of(revision)}
        return self._ask("GET", f"{self._at}/index", RouterIndex, query=query)

    # Prompts

    @call
    def context(
        self,
        query: str = "",
        *,
        token_budget: int | None = None,
        format: ContextFormat = "markdown",
        agent: str | None = None,
        max_lines: int | None = None,
        revision: AsOf | None = None,
    ) -> Steps[Context]:
        """A block for a prompt: preferences and rules, then what answers `query`, or the newest entries.

        In the format "harness" the notebook of `agent` ("main" unless it is given), at most `max_lines` of it, and
        the names of its topic files.
        """
        return self._context(_about(query, token_budget, format, revision, agent, max_lines))

    @call
    def context_if_changed(
        self,
        etag: str,
        query: str = "",
        *,
        token_budget: int | None = None,
        format: ContextFormat = "markdown",
        agent: str | None = None,
        max_lines: int | None = None,
    ) -> Steps[Context | None]:
        """The block, or None while it is still the one that `etag` came with."""
        response = yield from self._connection.send(
            "GET",
            f"{self._at}/context",
            query=_about(query, token_budget, format, None, agent, max_lines),
            headers={"If-None-Match": f'"{etag}"'},
        )
        if response.status_code == httpx.codes.NOT_MODIFIED:
            return None
        return _parsed(response, Context)

    @call
    def context_for(
        self, query: str, *, token_budget: int | None = None, revision: AsOf | None = None
    ) -> Steps[list[dict[str, str]]]:
        """What there is to know for `query` as chat messages, to put before the others: one, or none."""
        found = yield from self._context(_about(query, token_budget, "messages", revision))
        return found.messages

    @call
    def notebook_context(
        self,
        agent: str = "main",
        *,
        token_budget: int | None = None,
        keep: Literal["head", "tail"] = "tail",
        max_lines: int | None = None,
        revision: AsOf | None = None,
    ) -> Steps[Context]:
        """An agent's notebook as a section for its instructions; empty while it has none."""
        asked = {"agent": agent, "token_budget": token_budget, "keep": keep, "max_lines": max_lines}
        return self._context({"format": "pydantic-deep", **asked, **_as_of(revision)})

    # History

    @asking(RevisionsRequest)
    def list_revisions(self, asked: RevisionsRequest) -> Steps[Page[RevisionRead]]:
        """One page of the tree's revisions, newest first: by an actor's id, of a file or folder, of a time."""
        return self._ask("GET", f"{self._at}/revisions", Page[RevisionRead], query=given(asked))

    @call
    def get_revision(self, number: int) -> Steps[RevisionDetail]:
        """A revision with the files and entries that it changed."""
        return self._ask("GET", self._revision(number), RevisionDetail)

    @call
    def diff(self, old: int, new: int | None = None, *, path: str | None = None) -> Steps[list[FileDiff]]:
        """How each file, or those at and below `path`, differs between a revision and another one, or now."""
        return self._ask_all(
            "GET",
            f"{self._revision(old)}/diff",
            Items[FileDiff],
            query={"against": new, "path": None if path is None else _folder(path)},
        )

    @call
    def blame(self, path: str, *, revision: AsOf | None = None) -> Steps[Blame]:
        """For each line of a text file, the revision that last changed it."""
        query = {"path": _canonical(path), **_as_of(revision)}
        return self._ask("GET", f"{self._at}/blame", Blame, query=query)

    @call
    def entry_accesses(self, entry_id: str) -> Steps[EntryAccesses]:
        """How often an entry was found or read, and when last, as far as it is written: up to a minute late."""
        return self._ask("GET", f"{self._entry(entry_id)}/accesses", EntryAccesses)

    @call
    def entry_history(self, entry_id: str) -> Steps[list[EntryVersion]]:
        """What an entry was from revision to revision, and before it those that it superseded; oldest first."""
        return self._ask_all(
            "GET",
            f"{self._entry(entry_id)}/history",
            Items[EntryVersion],
        )

    @call
    def restore(self, revision: int, *, path: str | None = None, message: str = "") -> Steps[Restored]:
        """Bring a file, a folder, or all that the key sees back to what it was; what came since goes."""
        body = {} if path is None else {"path": _folder(path)}
        return self._restore(revision, body, message)

    @call
    def restore_entry(self, entry_id: str, revision: int, *, message: str = "") -> Steps[Restored]:
        """Bring one entry back as it was; the rest of its file stays as it is."""
        return self._restore(revision, {"entry": entry_id}, message)

    @asking(UndoRequest)
    def undo(self, asked: UndoRequest) -> Steps[Undone]:
        """Take back what one revision, or one actor from the revision `since` on, did; what others did stays.

        UndoRefused when something has changed since in the same place, unless `skip_conflicts` asks for the rest.
        With `dry_run` nothing is changed, and the answer says what would be.
        """
        return self._ask("POST", f"{self._at}:undo", Undone, body=given(asked))

    # The whole tree

    @call
    def batch(self, operations: Sequence[Mapping[str, object]], *, message: str = "") -> Steps[BatchOfAny]:
        """Many changes in one revision, all or none; each is an object with `op` and the fields of its call."""
        body = _with_message({"operations": list(operations)}, message)
        return self._ask("POST", f"{self._at}/batch", BatchResult[Mapping[str, object]], body=body)

    @call
    def import_zip(
        self, archive: bytes | Path, *, on_conflict: OnConflict = "keep", dry_run: bool = False
    ) -> Steps[ImportReport]:
        """Bring the files of a zip archive into the tree, in one revision.

        `on_conflict` says what counts where the tree has, or had, something else: the tree's ("keep"), the import's
        ("take"), or both beside each other.
        """
        return self._import(archive, "zip", None, on_conflict, dry_run)

    @call
    def import_archive(
        self,
        archive: bytes | Path,
        *,
        format: ImportFormat,
        only: str | None = None,
        on_conflict: OnConflict = "keep",
        dry_run: bool = False,
    ) -> Steps[ImportReport]:
        """Bring in a tree or another system's memories, in one revision.

        A `zip` is a tree or a memory folder, `pydantic-deep` a zip of its notebooks, `jsonl` interchange v1 and
        `mneme` a SQLite file. `only` names the tree (jsonl) or agent (mneme) to take, where the file holds several.
        `on_conflict` is as for `import_zip`. An archive that is a Path is sent in pieces, and never whole in memory.
        """
        return self._import(archive, format, only, on_conflict, dry_run)

    # Requests

    def _every[Item](self, path: str, kind: type[Page[Item]]) -> Steps[list[Item]]:
        return _all_items(
            lambda cursor: self._ask("GET", path, kind, query={"cursor": cursor, "limit": _LARGEST_PAGE})
        )

    def _bytes(self, path: str, revision: AsOf | None) -> Steps[FileBytes]:
        response = yield from self._connection.send(
            "GET", self._file(path), query=_as_of(revision), headers={"Accept": _RAW}
        )
        return FileBytes(_canonical(path), response.content, _etag(response))

    def _export(self, name: str, media_type: str, revision: AsOf | None) -> Steps[httpx.Response]:
        return self._connection.send(
            "GET", f"{self._at}/{name}", query=_as_of(revision), headers={"Accept": media_type}, streamed=True
        )

    def _export_audit(self) -> Steps[httpx.Response]:
        return self._connection.send("GET", "/audit.jsonl", streamed=True)

    def _import(
        self,
        archive: bytes | Path,
        format: ImportFormat,
        only: str | None,
        on_conflict: OnConflict,
        dry_run: bool,
    ) -> Steps[ImportReport]:
        return self._ask(
            "POST",
            f"{self._at}/imports",
            ImportReport,
            query={
                "dry_run": dry_run or None,
                "format": format,
                "only": only,
                "on_conflict": None if on_conflict == "keep" else on_conflict,
            },
            content=archive,
            headers={"Content-Type": _RAW},
            patience=_IMPORT_SECONDS,
        )

    def _file(self, path: str) -> str:
        return f"{self._at}/files/{quote(_canonical(path)[1:], safe='/')}"

    def _entry(self, entry_id: str) -> str:
        return f"{self._at}/entries/{segment(entry_id)}"

    def _revision(self, number: int) -> str:
        return f"{self._at}/revisions/{number}"

    def _restore(self, revision: int, body: Mapping[str, object], message: str) -> Steps[Restored]:
        return self._ask(
            "POST",
            f"{self._revision(revision)}:restore",
            Restored,
            body=_with_message(body, message),
        )

    def _listing(
        self, folder: str, *, depth: int | None, cursor: str | None, limit: int | None, revision: AsOf | None
    ) -> Steps[Page[Listed]]:
        query = {
            "prefix": _folder(folder),
            "depth": depth,
            "cursor": cursor,
            "limit": limit,
            **_as_of(revision),
        }
        return self._ask(
            "GET",
            f"{self._at}/files",
            Page[Listed],
            query=query,
        )

    def _context(self, query: Mapping[str, object]) -> Steps[Context]:
        response = yield from self._connection.send("GET", f"{self._at}/context", query=query)
        return _parsed(response, Context)

    def _patch[Answer](
        self, path: str, body: Mapping[str, object], kind: type[Answer], *, if_match: str | None, message: str
    ) -> Steps[Answer]:
        response = yield from self._connection.send(
            "PATCH", self._file(path), body=_with_message(body, message), headers=_preconditions(if_match)
        )
        return _parsed(response, kind)

    def _question[Answer](
        self,
        name: str,
        kind: type[Answer],
        body: Mapping[str, object],
        *,
        revision: AsOf | None = None,
    ) -> Steps[Answer]:
        """A POST that only reads."""
        return self._ask("POST", f"{self._at}/{name}", kind, body=_given({**body, **_as_of(revision)}))

    def _ask_all[Item](
        self, method: str, path: str, kind: type[Items[Item]], **request: Unpack[RequestParts]
    ) -> Steps[list[Item]]:
        answer: Items[Item] = yield from self._ask(method, path, kind, **request)
        return [*answer.items]

    def _ask[Answer](
        self, method: str, path: str, kind: type[Answer], **request: Unpack[RequestParts]
    ) -> Steps[Answer]:
        response = yield from self._connection.send(method, path, **request)
        return _parsed(response, kind)


def _parsed[Answer](response: httpx.Response, kind: type[Answer]) -> Answer:
    data = json_object(response)
    try:
        answer = from_json(kind, data)
    except ValueError as error:
        raise UnexpectedAnswer(
            f"The server's answer can't be read: {error}. Client and server may be of different versions.",
            status=response.status_code,
        ) from error
    if hasattr(answer, "etag"):
        return cast(Answer, replace(cast(Any, answer), etag=_etag(response)))
    return answer


def _all_items[Item](page_after: Callable[[str | None], Steps[Page[Item]]]) -> Steps[list[Item]]:
    page = yield from page_after(None)
    items = list(page.items)
    while page.next is not None:
        page = yield from page_after(page.next)
        items += page.items
    return items


def _one_for_each[Item](answer: list[Item], asked: Sequence[object]) -> list[Item]:
    if len(answer) != len(asked):
        raise UnexpectedAnswer(f"The server answered {len(answer)} of {len(asked)} files.")
    return answer


def _key(key_id: str) -> str:
    return f"/keys/{segment(key_id)}"


def _canonical(path: str) -> str:
    try:
        return canonical_path(path)
    except FormatError as error:
        raise InvalidRequest(str(error), code=error.code) from error


def _folder(path: str) -> str:
    try:
        return canonical_folder(path)
    except FormatError as error:
        raise InvalidRequest(str(error), code=error.code) from error


def _content(content: str | bytes | Path) -> bytes | Path:
    if isinstance(content, str):
        return _utf8(content)
    return content if isinstance(content, Path) else bytes(content)


def _utf8(text: str) -> bytes:
    try:
        return checked_text(text, field="content", max_bytes=sys.maxsize, nul_allowed=True).encode()
    except FormatError as error:
        raise InvalidRequest(str(error), code=error.code) from error


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _as_of(revision: AsOf | None) -> dict[str, object]:
    """The parameter that says which moment to read."""
    if isinstance(revision, datetime):
        return {"at": _time(revision)}
    return {} if revision is None else {"revision": revision}


def _about(
    query: str,
    token_budget: int | None,
    format: ContextFormat,
    revision: AsOf | None,
    agent: str | None = None,
    max_lines: int | None = None,
) -> dict[str, object]:
    """What a context is asked for."""
    asked = {"query": query, "token_budget": token_budget, "format": format, "agent": agent}
    return {**asked, "max_lines": max_lines, **_as_of(revision)}


def _given(fields: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value is not None}


def _with_message(body: Mapping[str, object], message: str) -> dict[str, object]:
    return {**body, "message": message} if message else dict(body)


def _preconditions(if_match: str | None, *, create_only: bool = False) -> dict[str, str]:
    headers = {}
    if if_match is not None:
        headers["If-Match"] = if_match if if_match == "*" else f'"{if_match}"'
    if create_only:
        headers["If-None-Match"] = "*"
    return headers


def _etag(response: httpx.Response) -> str | None:
    etag: str | None = response.headers.get("ETag")
    return etag.removeprefix("W/").strip('"') if etag else None


def _utc(at: datetime | None) -> datetime | None:
    """The instant with its offset; a naive one is in UTC."""
    if at is None:
        return None
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at


def _time(at: datetime | None) -> str | None:
    aware = _utc(at)
    return None if aware is None else aware.isoformat()
