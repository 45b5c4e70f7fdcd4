"""`RemoteBackend`: a tree of a memsvc server as deepagents sees files, over HTTP and without Django."""

from collections.abc import Iterator, Sequence
from typing import Final

from memsvc.agents.backends.base import TreeBackend
from memsvc.agents.backends.ports import Upload
from memsvc.agents.transactional import EntrySearch
from memsvc.client.errors import NotFound
from memsvc.client.http import MemsvcClient
from memsvc.contract.errors import ErrorCode
from memsvc.contract.files import Downloaded, Edited, Listed, Match, Uploaded, Window, WriteWarning
from memsvc.format import EntryDraft, IndexRow, MemoryHit, MemoryKind
from memsvc.format.paths import canonical_folder

_UPLOAD_FILES: Final = 100
_UPLOAD_BYTES: Final = 4 * 1024 * 1024
_MOST_LINES: Final = 2**31 - 1


class RemoteBackend(TreeBackend):
    """The folder `root` of a tree, as "/" of an agent's file system; for a route at `/memory/` or on its own.

    Give it a MemsvcClient, or a base URL with `api_key` (and `tree`). The key's scopes and prefix decide on the server
    what it may do.
    """

    def __init__(
        self,
        client_or_url: MemsvcClient | str,
        *,
        api_key: str = "",
        tree: str = "default",
        root: str = "/memory/",
        root_deletable: bool = False,
    ) -> None:
        """With `root_deletable`, deleting "/" empties the mount instead of being refused; never for a whole tree."""
        if isinstance(client_or_url, MemsvcClient):
            if api_key or tree not in {"default", client_or_url.tree}:
                raise ValueError(
                    "a client has its key and its tree already; give api_key and tree with a URL only"
                )
            self._client = client_or_url
        else:
            self._client = MemsvcClient(client_or_url, api_key, tree=tree)
        super().__init__(HttpPort(self._client, canonical_folder(root)), root, root_deletable=root_deletable)

    def __repr__(self) -> str:
        return f"RemoteBackend({self._client!r}, root={self.root!r})"

    def close(self) -> None:
        """Close the client's connections, also for the copies made by `read_only()`."""
        self._client.close()


class HttpPort:
    """The tree of a client, of which the folder `root` is served. The client tries again, and does nothing twice."""

    downloads_at_once: Final = 100

    def __init__(self, client: MemsvcClient, root: str) -> None:
        self._client = client
        self._root = root

    def list_folder(self, folder: str) -> Sequence[Listed]:
        try:
            return self._client.list_folder(folder)
        except NotFound as error:
            if error.code == ErrorCode.PATH_NOT_FOUND and folder == self._root:
                return []
            raise

    def read_lines(self, path: str, offset: int, limit: int) -> Window:
        first, count = (min(max(number, 0), _MOST_LINES) for number in (offset, limit))
        return self._client.read_lines(path, offset=first, limit=count)

    def read_file(self, path: str) -> bytes:
        return self._client.read_bytes(path).data

    def write_file(self, path: str, content: str) -> Sequence[WriteWarning]:
        return self._client.write_file(path, content).warnings

    def edit_file(self, path: str, old: str, new: str, *, replace_all: bool) -> Edited:
        return self._client.edit_file(path, old, new, replace_all=replace_all)

    def delete(self, path: str) -> None:
        self._client.delete(path, recursive=True)

    def grep(
        self, pattern: str, folder: str, glob: str | None, max_count: int | None
    ) -> tuple[Sequence[Match], bool]:
        # The server finds one at least; whoever wants none still learns whether there is any.
        wanted = None if max_count is None else max(max_count, 1)
        found = self._client.grep(pattern, path=folder, glob=glob, max_count=wanted)
        if max_count is not None and max_count < 1:
            return [], bool(found.items)
        return found.items, found.truncated

    def glob(self, pattern: str, folder: str) -> tuple[Sequence[Listed], bool]:
        found = self._client.glob(pattern, path=folder)
        return found.items, found.truncated

    def upload_batches(self, files: Sequence[Upload]) -> Iterator[Sequence[Upload]]:
        """The files in requests of a size that a server takes, in order."""
        batch: list[Upload] = []
        size = 0
        for item in files:
            if batch and (len(batch) == _UPLOAD_FILES or size + len(item[2]) > _UPLOAD_BYTES):
                yield batch
                batch, size = [], 0
            batch.append(item)
            size += len(item[2])
        if batch:
            yield batch

    def upload_files(self, files: Sequence[tuple[str, bytes]]) -> Sequence[Uploaded]:
        if len(files) == 1 and len(files[0][1]) > _UPLOAD_BYTES:
            # As it is: in base64 it might be more than the server takes.
            written = self._client.write_file(*files[0])
            return [Uploaded(written.path, None, warnings=written.warnings)]
        return self._client.upload_files(files)

    def download_files(self, paths: Sequence[str]) -> Sequence[Downloaded]:
        return self._client.download_files(paths)

    def add_entry(self, draft: EntryDraft) -> MemoryHit:
        stored = self._client.add_entry(
            draft.category,
            draft.body,
            summary=draft.summary,
            tags=draft.tags,
            source=draft.source,
            confidence=draft.confidence,
            title=draft.title,
            when=draft.when,
            supersedes=draft.supersedes,
            expires_at=draft.expires_at,
            metadata=draft.metadata,
        )
        return MemoryHit(stored.path, stored.entry)

    def get_entry(self, entry_id: str) -> MemoryHit:
        found = self._client.get_entry(entry_id)
        return MemoryHit(found.path, found.entry)

    def search(
        self, wanted: EntrySearch, cursor: str | None, limit: int
    ) -> tuple[list[MemoryHit], str | None]:
        page = self._client.search(
            wanted.query,
            mode="hybrid" if wanted.ranked else "words",
            kind=wanted.kind,
            category=wanted.category,
            tags=wanted.tags,
            since=wanted.since,
            include_superseded=wanted.include_superseded,
            cursor=cursor,
            limit=limit,
        )
        return [MemoryHit(hit.path, hit.entry, tuple(hit.duplicates)) for hit in page.items], page.next

    def read_index(self, kind: MemoryKind | None) -> tuple[str, Sequence[IndexRow]]:
        index = self._client.read_index(kind)
        return index.path, index.rows

    def scaffold(self) -> list[str]:
        return self._client.scaffold()
