"""Reading a zip archive that may have been made to do harm: nothing of it is believed before it was counted."""

import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import BinaryIO, Final, Self

from memsvc.transfer.names import DRIVE, is_hostile, printable
from memsvc.transfer.refusals import ArchiveTooLarge, ImportRefused, InvalidArchive
from memsvc.tree.files import MAX_FILE_BYTES

_PIECE_BYTES: Final = 64 * 1024
_CENTRAL_RECORD: Final = b"PK\x01\x02"
_TAKEN_METHODS: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
# Encrypted, patched, strongly encrypted, with a masked directory.
_REFUSED_FLAGS: Final = 0x0001 | 0x0020 | 0x0040 | 0x2000
_UTF8_FLAG: Final = 0x0800
_UNICODE_PATH: Final = 0x7075
# A ratio means nothing for the first bytes: a file of blanks is no bomb.
_RATIO_FROM_BYTES: Final = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """What an import takes: members, bytes when inflated (of one file, and of all), and inflated bytes for one."""

    members: int = 10_000
    file_bytes: int = MAX_FILE_BYTES
    bytes: int = 50 * 1024 * 1024
    ratio: int = 200


# For whoever may run commands on the server's own machine, and could as well write to the database.
OPERATOR_LIMITS: Final = Limits(members=1_000_000, bytes=64 * 1024**3, ratio=2000)


class Archive:
    """The files of a zip archive. Opening it checks every name and kind; reading counts while it inflates."""

    def __init__(self, source: BinaryIO, limits: Limits) -> None:
        self._limits = limits
        self._size = _require_few_members(source, limits.members)
        with _damage_as_refusal():
            self._zip = zipfile.ZipFile(source)
        members = self._zip.infolist()
        named = [(*_name_of(member), member) for member in members]
        if refused := [(name, reason) for name, _, member in named if (reason := _refusal(name, member))]:
            raise ImportRefused(refused)
        if len({member.orig_filename for member in members}) < len(members):
            raise InvalidArchive(
                "The archive holds one name twice, so that it isn't clear which file is meant."
            )
        self._inflated: dict[str, int] = {}
        self._total = 0
        self._files: dict[str, zipfile.ZipInfo] = {}
        # What is to be said of names, and the files that have the name of another one.
        self.warnings: list[str] = []
        self.refused: list[tuple[str, str]] = []
        for name, is_guessed, member in named:
            if name.endswith("/"):
                continue
            if name in self._files:
                self.refused.append(
                    (name, "has the name of another file in the archive, in another encoding")
                )
                continue
            self._files[name] = member
            if is_guessed:
                self.warnings.append(
                    f"the name {printable(name)} came without its encoding and was read as code page 437"
                )
        # An honest archive says that it is too large; a lying one is caught while it inflates.
        if len(self._files) > limits.members:
            raise _too_many(limits.members)
        self._require_within_limits(sum(member.file_size for member in self._files.values()))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._zip.close()

    @property
    def names(self) -> list[str]:
        """The names of the files, in the archive's order."""
        return list(self._files)

    def read(self, name: str) -> bytes:
        """One file's bytes, with its checksum checked, and counted against what the archive may hold in all."""
        data = bytearray()
        before = self._total - self._inflated.get(name, 0)
        with _damage_as_refusal(), self._zip.open(self._files[name]) as member:
            while piece := member.read(_PIECE_BYTES):
                data += piece
                if len(data) > self._limits.file_bytes:
                    most = f"{self._limits.file_bytes:,} bytes"
                    raise ArchiveTooLarge(f"{name!r} is too large: a file takes at most {most}.")
                self._require_within_limits(before + len(data))
        self._inflated[name] = len(data)
        self._total = before + len(data)
        return bytes(data)

    def _require_within_limits(self, inflated: int) -> None:
        if inflated > self._limits.bytes:
            raise ArchiveTooLarge(
                f"The archive holds more than {self._limits.bytes:,} bytes; import it in parts."
            )
        if inflated > max(_RATIO_FROM_BYTES, self._size * self._limits.ratio):
            raise ArchiveTooLarge("The archive inflates to far more than its own size; it is not taken.")


def _require_few_members(source: BinaryIO, most: int) -> int:
    """The archive's size; refuses before zipfile makes an object of every member that a directory lists."""
    size = found = 0
    tail = b""
    source.seek(0)
    while piece := source.read(1024 * 1024):
        size += len(piece)
        found += (tail + piece).count(_CENTRAL_RECORD)
        tail = piece[-(len(_CENTRAL_RECORD) - 1) :]
        # Folders are members too, and a zip inside the zip counts as well.
        if found > 2 * most:
            raise _too_many(most)
    source.seek(0)
    return size


def _too_many(most: int) -> ArchiveTooLarge:
    return ArchiveTooLarge(f"The archive holds more than {most:,} files; import it in parts.")


def _name_of(member: zipfile.ZipInfo) -> tuple[str, bool]:
    """A member's name, and whether its encoding was guessed.

    The Unicode Path field of Info-ZIP counts where its checksum is that of the name, then the flag for UTF-8. Most
    programs that set neither write UTF-8 all the same; what is none is of the code page that the format began with.
    """
    if member.flag_bits & _UTF8_FLAG:
        return _unicode_path(member, member.orig_filename.encode()) or member.orig_filename, False
    raw = member.orig_filename.encode("cp437")
    if name := _unicode_path(member, raw):
        return name, False
    try:
        return raw.decode(), False
    except UnicodeDecodeError:
        return member.orig_filename, True


def _unicode_path(member: zipfile.ZipInfo, raw: bytes) -> str:
    extra = member.extra
    while len(extra) >= 4:
        kind, size = struct.unpack_from("<HH", extra)
        data, extra = extra[4 : 4 + size], extra[4 + size :]
        if kind == _UNICODE_PATH and data[:1] == b"\1" and data[1:5] == zlib.crc32(raw).to_bytes(4, "little"):
            with suppress(UnicodeDecodeError):
                return data[5:].decode()
    return ""


def _refusal(name: str, member: zipfile.ZipInfo) -> str:
    """Why a member is not taken, as the end of a sentence that begins with its name; empty if it is."""
    if any("\0" in each or "\\" in each or DRIVE.match(each) for each in (name, member.orig_filename)):
        return "has a name that programs read differently"
    if any(is_hostile(each.removesuffix("/")) for each in (name, member.orig_filename)):
        return "has a name that leads elsewhere, holds a control character or is longer than any system takes"
    is_folder = name.endswith("/")
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR) or (kind == stat.S_IFDIR and not is_folder):
        return "is a link or a device, not a file"
    if member.flag_bits & _REFUSED_FLAGS:
        return "is encrypted; make the archive without a password"
    if member.compress_type not in _TAKEN_METHODS:
        return "is packed in a way that is not taken; use the ordinary zip method (deflate)"
    return ""


@contextmanager
def _damage_as_refusal() -> Iterator[None]:
    """What zipfile raises for archives that are none: also RuntimeError (encrypted) and NotImplementedError."""
    try:
        yield
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        NotImplementedError,
        OverflowError,
        RuntimeError,
        ValueError,
        OSError,
    ) as error:
        raise InvalidArchive(
            "The file is not a zip archive, or it is damaged; make it again with an ordinary zip program."
        ) from error
