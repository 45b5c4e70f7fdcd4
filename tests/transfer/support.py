"""Files in and out of trees and archives, in one line each."""

import io
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from memsvc.contract.imports import ImportReport
from memsvc.transfer.exports import export_zip
from memsvc.transfer.imports import import_zip
from memsvc.transfer.names import MANIFEST_NAME
from memsvc.tree import services
from memsvc.tree.access import Access
from memsvc.tree.commands import OnConflict
from tests.tree.support import contents


def put(access: Access, files: Mapping[str, bytes]) -> None:
    for path, data in files.items():
        services.write_file(access, path, data)


def everything(access: Access) -> dict[str, bytes]:
    return contents(access)


def exported(access: Access, revision: int | None = None) -> bytes:
    return b"".join(export_zip(access, revision))


def unzipped(archive: bytes) -> dict[str, bytes]:
    """The members, without the manifest."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        assert opened.testzip() is None
        return {name: opened.read(name) for name in opened.namelist() if name != MANIFEST_NAME}


def zip_of(files: Mapping[str, bytes], *, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return sink.getvalue()


def bring(
    access: Access, archive: bytes, *, on_conflict: OnConflict = OnConflict.KEEP, dry_run: bool = False
) -> ImportReport:
    return import_zip(access, io.BytesIO(archive), on_conflict=on_conflict, dry_run=dry_run)


def outcomes(report: ImportReport) -> dict[str, str]:
    return {file.path: file.outcome for file in report.files}


def write_below(folder: Path, files: Mapping[str, bytes]) -> Path:
    for name, data in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return folder


def read_below(folder: Path) -> dict[str, bytes]:
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file.name != MANIFEST_NAME
    }


def zip_by_hand(
    members: Sequence[tuple[bytes, bytes]],
    *,
    extra: bytes = b"",
    flags: int = 0x800,
    method: int = 0,
    size: int | None = None,
    checksum: int | None = None,
    attributes: int = 0o100644 << 16,
) -> bytes:
    """A zip of stored members whose headers say what they are told to; `extra` is a field of the first one."""
    local, central = b"", b""
    for name, data in members:
        fields = struct.pack(
            "<HHHHIIIHH",
            flags,
            method,
            0,
            0x21,
            zlib.crc32(data) if checksum is None else checksum,
            len(data),
            len(data) if size is None else size,
            len(name),
            len(extra),
        )
        central += struct.pack("<4sHH", b"PK\1\2", 0x0314, 20) + fields
        central += struct.pack("<HHHII", 0, 0, 0, attributes, len(local)) + name + extra
        local += struct.pack("<4sH", b"PK\3\4", 20) + fields + name + extra + data
        extra = b""
    count = len(members)
    end = struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, count, count, len(central), len(local), 0)
    return local + central + end
