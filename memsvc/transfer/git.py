"""Git's own formats, as much of them as an export writes: objects, packs and bundles. Pure Python, no git needed."""

import hashlib
import re
import zlib
from collections.abc import Generator
from dataclasses import dataclass, field
from datetime import datetime
from typing import BinaryIO, Final

_PIECE_BYTES: Final = 64 * 1024
_FILE_MODE, _FOLDER_MODE = b"100644", b"40000"
_COMMIT, _TREE, _BLOB = (1, b"commit"), (2, b"tree"), (3, b"blob")

type ObjectId = bytes


@dataclass(frozen=True, slots=True)
class Signature:
    """Who made a commit and when; git takes neither angle brackets nor line breaks in it, so they become blanks."""

    name: str
    address: str
    at: datetime

    def line(self) -> bytes:
        name = re.sub(r"[<>\x00-\x20\x7f]+", " ", self.name).strip() or "unknown"
        address = re.sub(r"[^A-Za-z0-9@._-]+", "-", self.address)
        return f"{name} <{address}> {int(self.at.timestamp())} +0000".encode()


class Pack:
    """Objects on their way into a pack, each once, kept compressed in a file rather than in memory."""

    def __init__(self, spool: BinaryIO) -> None:
        self._spool = spool
        self._ids: set[ObjectId] = set()

    def blob(self, data: bytes) -> ObjectId:
        return self._put(_BLOB, data)

    def commit(self, tree: ObjectId, parent: ObjectId | None, author: Signature, message: str) -> ObjectId:
        lines = [b"tree " + tree.hex().encode()]
        lines += [b"parent " + parent.hex().encode()] if parent else []
        lines += [b"author " + author.line(), b"committer " + author.line()]
        text = message.replace("\0", "").encode()
        return self._put(_COMMIT, b"\n".join(lines) + b"\n\n" + text)

    def folder(self, entries: dict[bytes, tuple[bytes, ObjectId]]) -> ObjectId:
        # Git compares a folder's name as if it ended in a slash.
        ordered = sorted(
            entries.items(), key=lambda item: item[0] + (b"/" if item[1][0] == _FOLDER_MODE else b"")
        )
        return self._put(
            _TREE, b"".join(mode + b" " + name + b"\0" + object_id for name, (mode, object_id) in ordered)
        )

    def _put(self, kind: tuple[int, bytes], data: bytes) -> ObjectId:
        number, name = kind
        header = b"%s %d\0" % (name, len(data))
        object_id = hashlib.sha1(header + data, usedforsecurity=False).digest()
        if object_id not in self._ids:
            self._ids.add(object_id)
            self._spool.write(_entry_header(number, len(data)) + zlib.compress(data))
        return object_id

    def bundle(self, branch: str, head: ObjectId) -> Generator[bytes]:
        """The pieces of a bundle of all objects, in which `branch` stands at the commit `head`."""
        tip = head.hex()
        yield f"# v2 git bundle\n{tip} HEAD\n{tip} refs/heads/{branch}\n\n".encode()
        start = b"PACK" + (2).to_bytes(4) + len(self._ids).to_bytes(4)
        digest = hashlib.sha1(start, usedforsecurity=False)
        yield start
        self._spool.seek(0)
        while piece := self._spool.read(_PIECE_BYTES):
            digest.update(piece)
            yield piece
        yield digest.digest()


def _entry_header(kind: int, size: int) -> bytes:
    """An object's kind and size, four bits and then seven in a byte, the lowest first."""
    header = bytearray()
    byte, size = kind << 4 | size & 0x0F, size >> 4
    while size:
        header.append(byte | 0x80)
        byte, size = size & 0x7F, size >> 7
    header.append(byte)
    return bytes(header)


@dataclass(slots=True)
class Folder:
    """A folder of the working tree, which knows the object that it is until something in it changes."""

    folders: dict[bytes, "Folder"] = field(default_factory=dict)
    files: dict[bytes, ObjectId] = field(default_factory=dict)
    _known: ObjectId | None = None

    def put(self, name: bytes, blob: ObjectId) -> None:
        *folders, file = name.split(b"/")
        at = self
        at._known = None
        for folder in folders:
            at = at.folders.setdefault(folder, Folder())
            at._known = None
        at.files[file] = blob

    def remove(self, name: bytes) -> None:
        """Take a file out, and the folders that are empty then; git has none. It may not be there."""
        folder, _, rest = name.partition(b"/")
        self._known = None
        if not rest:
            self.files.pop(folder, None)
        elif below := self.folders.get(folder):
            below.remove(rest)
            if not below.files and not below.folders:
                del self.folders[folder]

    def written(self, pack: Pack) -> ObjectId:
        if self._known is None:
            entries = {name: (_FILE_MODE, blob) for name, blob in self.files.items()}
            entries |= {name: (_FOLDER_MODE, below.written(pack)) for name, below in self.folders.items()}
            self._known = pack.folder(entries)
        return self._known
