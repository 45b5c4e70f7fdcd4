"""A typed client for the REST interface: one method for each thing that a server does. Needs no Django.

with MemsvcClient("https://memory.example.com", api_key) as memory:
    memory.add_entry(MemoryCategory.FACTS, "ACME moved to Berlin.", summary="ACME's seat", tags=["acme"])
    for found in memory.search("acme").items:
        print(found.path, found.entry.summary)
"""

import base64
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from types import TracebackType
from typing import Final, Literal, Self, Unpack
from urllib.parse import quote

import httpx

from memsvc.client import parsing
from memsvc.client.connection import (
    DEFAULT_TIMEOUT,
    Connection,
    RequestParts,
    RetryPolicy,
    json_object,
    segment,
)
from memsvc.client.errors import InvalidRequest, UnexpectedAnswer
from memsvc.client.records import (
    BatchResult,
    Blame,
    Deleted,
    Downloaded,
    Edited,
    EntryRead,
    EntryRetired,
    EntryVersion,
    EntryWritten,
    FileBytes,
    FileDiff,
    ImportReport,
    IndexView,
    KeyInfo,
    KeyUsage,
    Listed,
    Matches,
    Me,
    Moved,
    NewKey,
    Page,
    Restored,
    Revision,
    RevisionDetail,
    TreeDetail,
    TreeInfo,
    Undone,
    Uploaded,
    Usage,
    Window,
    Written,
)
from memsvc.format.entries import Confidence
from memsvc.format.errors import FormatError
from memsvc.format.layout import MemoryCategory, MemoryKind
from memsvc.format.paths import canonical_folder, canonical_path
from memsvc.format.text import checked_text

type SearchMode = Literal["words", "phrase"]
type Status = Literal["active", "superseded", "all"]
type ImportFormat = Literal["zip", "jsonl", "pydantic-deep", "mneme"]
# A revision's number, or an instant: what was the newest revision then.
type AsOf = int | datetime

_RAW: Final = "application/octet-stream"
# Thousands of files are one transaction, and the answer comes when it has ended.
_IMPORT_SECONDS: Final = 600.0
_LARGEST_PAGE: Final = 1000


class MemsvcClient:
    """One tree of a memsvc server, by API key.

    Every method answers with a frozen value of `memsvc.client.records` and raises a `MemsvcError`
    (`memsvc.client.errors`) when it was not done. Calls that failed for a passing reason are repeated, and done
    once all the same. One client may be used from many threads; it keeps its connections open until `close()`.

    `revision` in a read gives the tree as of that revision, by its number or by an instant; `if_match` in a change is
    the etag that a read gave and makes the change fail with PreconditionFailed when somebody else was faster.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        tree: str = "default",
        timeout: float | httpx.Timeout = DEFAULT_TIMEOUT,
        retries: RetryPolicy | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.tree: Final = tree
        self._connection: Final = Connection(
            base_url, api_key, timeout=timeout, retries=retries, transport=transport
        )
        self._at: Final = f"/trees/{segment(tree)}"

    def __repr__(self) -> str:
        return f"MemsvcClient({self._connection.base_url!r}, tree={self.tree!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; the client can't be used afterwards."""
        self._connection.close()

    def me(self) -> Me:
        """Whose key this is, and what it may do."""
        return self._ask("GET", "/me", parsing.me)

    # Trees

    def list_trees(self) -> list[TreeInfo]:
        """The tenant's trees that this key opens, by name, all pages of them."""
        return list(_all_items(self._trees_after))

    def create_tree(self, name: str, *, description: str = "") -> TreeInfo:
        """Make a new, empty tree; Conflict when there is one of that name. This client stays on its own tree."""
        return self._ask("POST", "/trees", parsing.tree_info, body={"name": name, "description": description})

    def describe(self) -> TreeDetail:
        """This client's tree: what it is and how much is in it."""
        return self._ask("GET", self._at, parsing.tree_detail)

    def set_description(self, description: str) -> TreeInfo:
        return self._ask("PATCH", self._at, parsing.tree_info, body={"description": description})

    def clone_tree(self, name: str, *, revision: int | None = None) -> TreeInfo:
        """Make a new tree with the files of this one, as of a revision. This client stays on its own tree."""
        body = _given({"name": name, "revision": revision})
        return self._ask("POST", f"{self._at}:clone", parsing.tree_info, body=body, patience=_IMPORT_SECONDS)

    def archive_tree(self) -> TreeInfo:
        """Make this client's tree read-only, for good."""
        return self._ask("POST", f"{self._at}:archive", parsing.tree_info, body={})

    def delete_tree(self) -> None:
        """Delete this client's tree with its whole history. Nothing can bring it back."""
        self._connection.send("DELETE", self._at, query={"confirm": self.tree}, patience=_IMPORT_SECONDS)

    # Keys: these need one with the scope "admin"

    def list_keys(self) -> list[KeyInfo]:
        """The keys that open nothing that this one doesn't open, newest first, all pages of them; ended ones too."""
        return list(_all_items(self._keys_after))

    def get_key(self, key_id: str) -> KeyInfo:
        return self._ask("GET", _key(key_id), parsing.key_info)

    def create_key(
        self,
        name: str,
        scopes: Collection[str],
        *,
        tree: str | None = None,
        path_prefix: str = "/",
        expires_at: datetime | None = None,
    ) -> NewKey:
        """Make a key, which can do no more than this one; Forbidden otherwise. Its text is never shown again."""
        body = {
            "name": name,
            "scopes": list(scopes),
            "tree": tree,
            "path_prefix": path_prefix,
            "expires_at": _time(expires_at),
        }
        return self._ask("POST", "/keys", parsing.new_key, body=_given(body))

    def rotate_key(self, key_id: str, *, overlap_hours: int = 24) -> NewKey:
        """Make a new key in the place of another, which works on for the overlap; 0 ends it at once."""
        body = {"overlap_hours": overlap_hours}
        return self._ask("POST", f"{_key(key_id)}:rotate", parsing.new_key, body=body)

    def revoke_key(self, key_id: str) -> KeyInfo:
        """Shut a key out, for good."""
        return self._ask("DELETE", _key(key_id), parsing.key_info)

    def usage(self, *, since: date | None = None, until: date | None = None) -> Usage:
        """What the tenant stores, and the requests by day (UTC) and key, from one day to another, both included.

        Needs a key with the scope "admin" that opens every tree. Requests are counted a minute late.
        """
        days = {"since": since, "until": until, "limit": _LARGEST_PAGE}

        def after(cursor: str | None) -> Page[KeyUsage]:
            query = {**days, "cursor": cursor}
            return self._ask("GET", "/usage", lambda data: parsing.page(data, parsing.key_usage), query=query)

        counted = _all_items(after)
        return self._ask("GET", "/usage", lambda data: parsing.usage(data, counted), query={"limit": 1})

    # Files

    def list_files(
        self,
        prefix: str = "/",
        *,
        cursor: str | None = None,
        limit: int | None = None,
        revision: AsOf | None = None,
    ) -> Page[Listed]:
        """One page of all files below a folder, by path."""
        return self._listing(prefix, depth=None, cursor=cursor, limit=limit, revision=revision)

    def iter_files(self, prefix: str = "/", *, revision: AsOf | None = None) -> Iterator[Listed]:
        """All files below a folder, by path, page after page."""
        return _all_items(lambda cursor: self.list_files(prefix, cursor=cursor, revision=revision))

    def list_folder(self, folder: str = "/", *, revision: AsOf | None = None) -> list[Listed]:
        """The files and folders directly in a folder, in code-point order."""
        return list(
            _all_items(
                lambda cursor: self._listing(folder, depth=1, cursor=cursor, limit=None, revision=revision)
            )
        )

    def read_lines(
        self, path: str, *, offset: int = 0, limit: int = 2000, revision: AsOf | None = None
    ) -> Window:
        """At most `limit` lines of a text file from line `offset` (0 is the first); other files come whole."""
        response = self._connection.send(
            "GET",
            self._file(path),
            query={"offset": offset, "limit": limit, **_as_of(revision)},
        )
        return _parsed(response, lambda data: parsing.window(data, _etag(response)))

    def read_bytes(self, path: str, *, revision: AsOf | None = None) -> FileBytes:
        """A whole file, byte for byte."""
        response = self._connection.send(
            "GET", self._file(path), query=_as_of(revision), headers={"Accept": _RAW}
        )
        return FileBytes(_canonical(path), response.content, _etag(response))

    def read_bytes_if_changed(self, path: str, etag: str) -> FileBytes | None:
        """A whole file, or None while it is still the one that `etag` came with."""
        headers = {"Accept": _RAW, "If-None-Match": f'"{etag}"'}
        response = self._connection.send("GET", self._file(path), headers=headers)
        if response.status_code == httpx.codes.NOT_MODIFIED:
            return None
        return FileBytes(_canonical(path), response.content, _etag(response))

    def read_text(self, path: str, *, revision: AsOf | None = None) -> str:
        """A whole text file with its own line ends; InvalidRequest (`not_text`) when it isn't UTF-8."""
        try:
            return self.read_bytes(path, revision=revision).data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InvalidRequest(
                f"'{path}' is no UTF-8 text; read its bytes instead.", code="not_text"
            ) from error

    def write_file(
        self,
        path: str,
        content: str | bytes,
        *,
        if_match: str | None = None,
        create_only: bool = False,
        message: str = "",
    ) -> Written:
        """Create or replace a file. With `create_only`, PreconditionFailed when it is there already."""
        data = _utf8(content) if isinstance(content, str) else bytes(content)
        headers = _preconditions(if_match, create_only=create_only)
        if message:
            body = {"content": _base64(data), "encoding": "base64", "message": message}
            response = self._connection.send("PUT", self._file(path), body=body, headers=headers)
        else:
            headers["Content-Type"] = _RAW
            response = self._connection.send("PUT", self._file(path), content=data, headers=headers)
        return _parsed(response, lambda data: parsing.written(data, _etag(response)))

    def edit_file(
        self,
        path: str,
        old_string: str,
        new_string: str,
        *,
        replace_all: bool = False,
        if_match: str | None = None,
        message: str = "",
    ) -> Edited:
        """Replace the one exact occurrence of `old_string` (every one with `replace_all`); else EditRefused."""
        body = {"old_string": old_string, "new_string": new_string, "replace_all": replace_all}
        return self._patch(path, body, if_match=if_match, message=message)

    def append_file(self, path: str, text: str, *, if_match: str | None = None, message: str = "") -> Edited:
        """Add text to the end of a file, as it is; the file is made when it isn't there."""
        return self._patch(path, {"append": text}, if_match=if_match, message=message)

    def delete(self, path: str, *, recursive: bool = False, if_match: str | None = None) -> Deleted:
        """Delete a file; with `recursive` also a folder with everything in it."""
        return self._ask(
            "DELETE",
            self._file(path),
            parsing.deleted,
            query={"recursive": recursive or None},
            headers=_preconditions(if_match),
        )

    def move(self, source: str, destination: str, *, overwrite: bool = False, message: str = "") -> Moved:
        """Rename a file or a folder with everything in it."""
        body = {"source": _canonical(source), "destination": _canonical(destination), "overwrite": overwrite}
        return self._ask("POST", f"{self._at}/files:move", parsing.moved, body=_with_message(body, message))

    def grep(
        self,
        pattern: str,
        *,
        path: str = "/",
        glob: str | None = None,
        max_count: int | None = None,
        revision: AsOf | None = None,
    ) -> Matches:
        """The lines that hold `pattern`, literally, in files by path; `truncated` when there are more."""
        body = {"pattern": pattern, "path": _folder(path), "glob": glob, "max_count": max_count}
        return self._question("files:grep", parsing.matches, body, revision=revision)

    def glob(self, pattern: str, *, path: str = "/", revision: AsOf | None = None) -> list[Listed]:
        """The files below `path` whose names match `pattern`, by path."""
        body = {"pattern": pattern, "path": _folder(path)}
        found = self._question(
            "files:glob", lambda data: parsing.page(data, parsing.listed), body, revision=revision
        )
        return list(found.items)

    def upload_files(self, files: Sequence[tuple[str, bytes]]) -> list[Uploaded]:
        """Write many files in one revision; each has its own verdict, in order, and a bad one stops no other."""
        items = [{"path": path, "content": _base64(content)} for path, content in files]
        answer = self._ask(
            "POST",
            f"{self._at}/files:upload",
            lambda data: [parsing.uploaded(item) for item in parsing.objects(data, "items")],
            body={"files": items},
        )
        return _one_for_each(answer, items)

    def download_files(self, paths: Sequence[str]) -> list[Downloaded]:
        """Many whole files, each with its own verdict, in order."""
        answer = self._question(
            "files:download",
            lambda data: [parsing.downloaded(item) for item in parsing.objects(data, "items")],
            {"paths": list(paths)},
        )
        return _one_for_each(answer, paths)

    # Entries

    def scaffold(self) -> list[str]:
        """Make what is missing of an empty memory: indexes and headings. The paths that were made."""
        return self._ask("POST", f"{self._at}:scaffold", lambda data: list(parsing.texts(data, "created")))

    def list_entries(
        self,
        *,
        kind: MemoryKind | None = None,
        category: MemoryCategory | None = None,
        tags: Sequence[str] = (),
        source: str | None = None,
        confidence: Confidence | None = None,
        status: Status | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        path_prefix: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
        revision: AsOf | None = None,
    ) -> Page[EntryRead]:
        """One page of the entries that pass all the filters, newest first."""
        query = {
            "kind": kind,
            "category": category,
            "tag": list(tags) or None,
            "source": source,
            "confidence": confidence,
            "status": status,
            "since": _utc(since),
            "until": _utc(until),
            "path_prefix": path_prefix,
            "cursor": cursor,
            "limit": limit,
            **_as_of(revision),
        }
        return self._ask(
            "GET",
            f"{self._at}/entries",
            lambda data: parsing.page(data, parsing.entry_read),
            query=query,
        )

    def get_entry(self, entry_id: str, *, revision: AsOf | None = None) -> EntryRead:
        """One entry by its id; NotFound when there is none."""
        if not entry_id:
            raise InvalidRequest("An entry id is needed.")
        return self._ask("GET", self._entry(entry_id), parsing.entry_read, query=_as_of(revision))

    def add_entry(
        self,
        category: MemoryCategory,
        body: str,
        *,
        summary: str = "",
        tags: Sequence[str] = (),
        source: str = "agent",
        confidence: Confidence = Confidence.MEDIUM,
        title: str | None = None,
        when: datetime | None = None,
        supersedes: str | None = None,
        expires_at: datetime | None = None,
        message: str = "",
    ) -> EntryWritten:
        """Store an entry in the file that its category has; with `supersedes`, retire that one with it."""
        fields = {
            "category": category,
            "body": body,
            "summary": summary,
            "tags": list(tags),
            "source": source,
            "confidence": confidence,
            "title": title,
            "when": _time(when),
            "supersedes": supersedes,
            "expires_at": _time(expires_at),
            "message": message or None,
        }
        return self._ask("POST", f"{self._at}/entries", parsing.entry_written, body=_given(fields))

    def supersede_entry(
        self,
        entry_id: str,
        body: str,
        *,
        category: MemoryCategory | None = None,
        summary: str | None = None,
        tags: Sequence[str] | None = None,
        source: str = "agent",
        confidence: Confidence = Confidence.MEDIUM,
        title: str | None = None,
        when: datetime | None = None,
        expires_at: datetime | None = None,
        message: str = "",
    ) -> EntryWritten:
        """Put a new entry in an entry's place. Category, summary and tags that are None are kept.

        A procedure stays in its file unless it gets a `title`.
        """
        fields = {
            "category": category,
            "body": body,
            "summary": summary,
            "tags": None if tags is None else list(tags),
            "source": source,
            "confidence": confidence,
            "title": title,
            "when": _time(when),
            "expires_at": _time(expires_at),
            "message": message or None,
        }
        return self._ask(
            "POST", f"{self._entry(entry_id)}:supersede", parsing.entry_written, body=_given(fields)
        )

    def retire_entry(self, entry_id: str, *, if_match: str | None = None) -> EntryRetired:
        """Take an entry out of its file; the history keeps it."""
        return self._ask(
            "DELETE", self._entry(entry_id), parsing.entry_retired, headers=_preconditions(if_match)
        )

    def search(
        self,
        query: str = "",
        *,
        mode: SearchMode = "words",
        kind: MemoryKind | None = None,
        category: MemoryCategory | None = None,
        tags: Sequence[str] = (),
        source: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        include_superseded: bool = False,
        cursor: str | None = None,
        limit: int | None = None,
        revision: AsOf | None = None,
    ) -> Page[EntryRead]:
        """One page of the entries that hold all the words of `query` (or, as a phrase, exactly that text)."""
        fields = {
            "query": query,
            "mode": mode,
            "kind": kind,
            "category": category,
            "tags": list(tags) or None,
            "source": source,
            "since": _time(since),
            "until": _time(until),
            "include_superseded": include_superseded,
            "cursor": cursor,
            "limit": limit,
        }
        return self._question(
            "search", lambda data: parsing.page(data, parsing.entry_read), fields, revision=revision
        )

    def recent_episodes(self, *, since: datetime | None = None, limit: int | None = None) -> list[EntryRead]:
        """The newest `limit` active episodes, oldest first."""
        return self._ask(
            "GET",
            f"{self._at}/episodes",
            lambda data: [parsing.entry_read(item) for item in parsing.objects(data, "items")],
            query={"since": _utc(since), "limit": limit},
        )

    def read_index(self, kind: MemoryKind | None = None, *, revision: AsOf | None = None) -> IndexView:
        """The router index of a kind, or the root one."""
        query = {"kind": kind, **_as_of(revision)}
        return self._ask("GET", f"{self._at}/index", parsing.index_view, query=query)

    # History

    def list_revisions(
        self,
        *,
        actor: str | None = None,
        path: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> Page[Revision]:
        """One page of the tree's revisions, newest first: by an actor's id, of a file or folder, of a time."""
        query = {
            "actor": actor,
            "path": None if path is None else _folder(path),
            "since": _utc(since),
            "until": _utc(until),
            "cursor": cursor,
            "limit": limit,
        }
        return self._ask(
            "GET",
            f"{self._at}/revisions",
            lambda data: parsing.page(data, parsing.revision),
            query=query,
        )

    def get_revision(self, number: int) -> RevisionDetail:
        """A revision with the files and entries that it changed."""
        return self._ask("GET", self._revision(number), parsing.revision_detail)

    def diff(self, old: int, new: int | None = None, *, path: str | None = None) -> list[FileDiff]:
        """How each file, or those at and below `path`, differs between a revision and another one, or now."""
        return self._ask(
            "GET",
            f"{self._revision(old)}/diff",
            lambda data: [parsing.file_diff(item) for item in parsing.objects(data, "items")],
            query={"against": new, "path": None if path is None else _folder(path)},
        )

    def blame(self, path: str, *, revision: AsOf | None = None) -> Blame:
        """For each line of a text file, the revision that last changed it."""
        query = {"path": _canonical(path), **_as_of(revision)}
        return self._ask("GET", f"{self._at}/blame", parsing.blame, query=query)

    def entry_history(self, entry_id: str) -> list[EntryVersion]:
        """What an entry was from revision to revision, and before it those that it superseded; oldest first."""
        return self._ask(
            "GET",
            f"{self._entry(entry_id)}/history",
            lambda data: [parsing.entry_version(item) for item in parsing.objects(data, "items")],
        )

    def restore(self, revision: int, *, path: str | None = None, message: str = "") -> Restored:
        """Bring a file, a folder, or all that the key sees back to what it was; what came since goes."""
        body = {} if path is None else {"path": _folder(path)}
        return self._restore(revision, body, message)

    def restore_entry(self, entry_id: str, revision: int, *, message: str = "") -> Restored:
        """Bring one entry back as it was; the rest of its file stays as it is."""
        return self._restore(revision, {"entry": entry_id}, message)

    def undo(
        self,
        *,
        revision: int | None = None,
        actor: str | None = None,
        since: int | None = None,
        dry_run: bool = False,
        skip_conflicts: bool = False,
        message: str = "",
    ) -> Undone:
        """Take back what one revision, or one actor from the revision `since` on, did; what others did stays.

        UndoRefused when something has changed since in the same place, unless `skip_conflicts` asks for the rest.
        With `dry_run` nothing is changed, and the answer says what would be.
        """
        fields = {
            "revision": revision,
            "actor": actor,
            "since": since,
            "dry_run": dry_run or None,
            "skip_conflicts": skip_conflicts or None,
        }
        return self._ask(
            "POST",
            f"{self._at}:undo",
            parsing.undone,
            body=_with_message(_given(fields), message),
        )

    # The whole tree

    def batch(self, operations: Sequence[Mapping[str, object]], *, message: str = "") -> BatchResult:
        """Many changes in one revision, all or none; each is an object with `op` and the fields of its call."""
        body = _with_message({"operations": list(operations)}, message)
        return self._ask("POST", f"{self._at}/batch", parsing.batch_result, body=body)

    def export_zip(self, *, revision: AsOf | None = None) -> Iterator[bytes]:
        """The tree as a zip archive, in pieces as they come; the same revision always gives the same bytes."""
        return self._exported("export.zip", "application/zip", revision)

    def export_jsonl(self, *, revision: AsOf | None = None) -> Iterator[bytes]:
        """Each file and each entry as JSON Lines (interchange v1), in pieces as they come."""
        return self._exported("export.jsonl", "application/jsonl", revision)

    def export_bundle(self, *, revision: AsOf | None = None) -> Iterator[bytes]:
        """The whole history as a git bundle, which `git clone` takes: a commit for each revision."""
        return self._exported("export.bundle", "application/x-git-bundle", revision)

    def _exported(self, name: str, media_type: str, revision: AsOf | None) -> Iterator[bytes]:
        with self._connection.stream(
            f"{self._at}/{name}", query=_as_of(revision), accept=media_type
        ) as pieces:
            yield from pieces

    def import_zip(self, archive: bytes, *, dry_run: bool = False) -> ImportReport:
        """Bring the files of a zip archive into the tree, in one revision, all or none."""
        return self.import_archive(archive, format="zip", dry_run=dry_run)

    def import_archive(
        self, archive: bytes, *, format: ImportFormat, only: str | None = None, dry_run: bool = False
    ) -> ImportReport:
        """Bring in a tree or another system's memories, in one revision, all or none.

        A `zip` is a tree or a memory folder, `pydantic-deep` a zip of its notebooks, `jsonl` interchange v1 and
        `mneme` a SQLite file. `only` names the tree (jsonl) or agent (mneme) to take, where the file holds several.
        """
        return self._ask(
            "POST",
            f"{self._at}/imports",
            parsing.import_report,
            query={"dry_run": dry_run or None, "format": format, "only": only},
            content=archive,
            headers={"Content-Type": "application/octet-stream"},
            patience=_IMPORT_SECONDS,
        )

    # Requests

    def _trees_after(self, cursor: str | None) -> Page[TreeInfo]:
        query = {"cursor": cursor, "limit": _LARGEST_PAGE}
        return self._ask("GET", "/trees", lambda data: parsing.page(data, parsing.tree_info), query=query)

    def _keys_after(self, cursor: str | None) -> Page[KeyInfo]:
        query = {"cursor": cursor, "limit": _LARGEST_PAGE}
        return self._ask("GET", "/keys", lambda data: parsing.page(data, parsing.key_info), query=query)

    def _file(self, path: str) -> str:
        return f"{self._at}/files/{quote(_canonical(path)[1:], safe='/')}"

    def _entry(self, entry_id: str) -> str:
        return f"{self._at}/entries/{segment(entry_id)}"

    def _revision(self, number: int) -> str:
        return f"{self._at}/revisions/{number}"

    def _restore(self, revision: int, body: Mapping[str, object], message: str) -> Restored:
        return self._ask(
            "POST",
            f"{self._revision(revision)}:restore",
            parsing.restored,
            body=_with_message(body, message),
        )

    def _listing(
        self, folder: str, *, depth: int | None, cursor: str | None, limit: int | None, revision: AsOf | None
    ) -> Page[Listed]:
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
            lambda data: parsing.page(data, parsing.listed),
            query=query,
        )

    def _patch(self, path: str, body: Mapping[str, object], *, if_match: str | None, message: str) -> Edited:
        response = self._connection.send(
            "PATCH", self._file(path), body=_with_message(body, message), headers=_preconditions(if_match)
        )
        return _parsed(response, lambda data: parsing.edited(data, _etag(response)))

    def _question[Answer](
        self,
        name: str,
        parse: Callable[[parsing.Json], Answer],
        body: Mapping[str, object],
        *,
        revision: AsOf | None = None,
    ) -> Answer:
        """A POST that only reads."""
        return self._ask("POST", f"{self._at}/{name}", parse, body=_given({**body, **_as_of(revision)}))

    def _ask[Answer](
        self, method: str, path: str, parse: Callable[[parsing.Json], Answer], **request: Unpack[RequestParts]
    ) -> Answer:
        return _parsed(self._connection.send(method, path, **request), parse)


def _parsed[Answer](response: httpx.Response, parse: Callable[[parsing.Json], Answer]) -> Answer:
    data = json_object(response)
    try:
        return parse(data)
    except ValueError as error:
        raise UnexpectedAnswer(
            f"The server's answer can't be read: {error}. Client and server may be of different versions.",
            status=response.status_code,
        ) from error


def _all_items[Item](page_at: Callable[[str | None], Page[Item]]) -> Iterator[Item]:
    cursor: str | None = None
    while True:
        page = page_at(cursor)
        yield from page.items
        if page.next is None:
            return
        cursor = page.next


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
    """The instant in UTC; a naive one already is."""
    if at is None:
        return None
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at


def _time(at: datetime | None) -> str | None:
    aware = _utc(at)
    return None if aware is None else aware.isoformat()
