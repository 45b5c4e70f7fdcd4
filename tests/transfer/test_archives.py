"""Archives made to do harm: each is refused as a whole, and nothing of it is stored."""

import io
import struct
import zipfile
import zlib
from collections.abc import Callable

import pytest

from memsvc.transfer.archives import Archive, Limits
from memsvc.transfer.refusals import ArchiveTooLarge, ImportRefused, InvalidArchive
from memsvc.tree.access import Access
from tests.transfer.support import bring, everything, zip_by_hand, zip_of

GOOD = (b"memory/ok.md", b"ok")
SMALL = Limits(members=3, file_bytes=1000, bytes=1500, ratio=10)


@pytest.mark.parametrize(
    "name",
    [
        b"../../up.md",
        b"/etc/passwd",
        b"C:\\windows.md",
        b"memory\\..\\up.md",
        b"memory/a.md\0.png",
        b"memory/a\nb.md",
        b"memory/./a.md",
        b"memory//a.md",
        b"memory/" + b"a" * 300 + b".md",
        b"memory/" + b"d/" * 300 + b"a.md",
        b"memory/\xff\xfe.md",
        "memory/．．/a.md".encode(),
    ],
)
def test_a_name_that_is_no_path_is_refused(memory: Access, name: bytes) -> None:
    with pytest.raises((ImportRefused, InvalidArchive)):
        bring(memory, zip_by_hand([(name, b"evil"), GOOD]))

    assert everything(memory) == {}


@pytest.mark.parametrize(
    "archive",
    [
        pytest.param(zip_by_hand([GOOD], attributes=0o120777 << 16), id="symbolic link"),
        pytest.param(zip_by_hand([GOOD], attributes=0o020644 << 16), id="device"),
        pytest.param(zip_by_hand([GOOD], attributes=0o010644 << 16), id="pipe"),
        pytest.param(zip_by_hand([GOOD], flags=0x801), id="encrypted"),
        pytest.param(zip_by_hand([GOOD], method=99), id="unknown method"),
        pytest.param(zip_of({"a.md": b"a"}, method=zipfile.ZIP_LZMA), id="lzma"),
        pytest.param(zip_of({"a.md": b"a"}, method=zipfile.ZIP_BZIP2), id="bzip2"),
        pytest.param(zip_by_hand([(b"a.md", b"1"), (b"a.md/b.md", b"2")]), id="file and folder"),
    ],
)
def test_what_is_no_plain_file_is_refused(memory: Access, archive: bytes) -> None:
    with pytest.raises(ImportRefused):
        bring(memory, archive)

    assert everything(memory) == {}


@pytest.mark.parametrize(
    "archive",
    [
        pytest.param(b"hello", id="no zip"),
        pytest.param(b"", id="empty file"),
        pytest.param(zip_of({"a.md": b"a" * 500, "b.md": b"b"})[:60], id="cut off"),
        pytest.param(zip_by_hand([GOOD, (b"b.md", b"abc")], checksum=1), id="wrong checksum"),
        pytest.param(zip_by_hand([(b"a.md", b"\xff" * 50)], method=8, size=100), id="bad deflate"),
        pytest.param(zip_by_hand([(b"a.md", b"1"), (b"a.md", b"2")]), id="one name twice"),
    ],
)
def test_a_damaged_archive_is_refused(memory: Access, archive: bytes) -> None:
    with pytest.raises(InvalidArchive):
        bring(memory, archive)

    assert everything(memory) == {}


def test_a_damaged_last_file_takes_the_first_ones_with_it(memory: Access) -> None:
    good = zip_of({"a.md": b"fine", "b.md": b"also fine"}, method=zipfile.ZIP_STORED)

    with pytest.raises(InvalidArchive):
        bring(memory, good.replace(b"also fine", b"not quite"))

    assert everything(memory) == {}


def lying_about_its_size() -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(b"a" * 50_000) + packer.flush()
    return zip_by_hand([(b"a.md", packed)], method=8, size=10, checksum=zlib.crc32(b"a" * 10))


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: zip_of({f"{n}.md": b"" for n in range(4)}), id="many files"),
        pytest.param(lambda: zip_of({f"{n}.md": b"" for n in range(50)}), id="very many files"),
        pytest.param(lambda: zip_of({"a.md": bytes(1001)}), id="one large file"),
        pytest.param(lambda: zip_of({"a.md": bytes(800), "b.md": bytes(800)}), id="large in all"),
    ],
)
def test_more_than_an_import_takes_is_refused(make: Callable[[], bytes]) -> None:
    with pytest.raises(ArchiveTooLarge):
        read_all(make(), SMALL)


def test_sizes_are_counted_and_not_believed() -> None:
    # zipfile itself stops at the size that the header claims, so that the rest never comes out.
    [data] = read_all(lying_about_its_size(), SMALL)

    assert data == b"a" * 10


def test_an_archive_that_inflates_beyond_measure_is_refused() -> None:
    bomb = zip_of({"a.md": bytes(9_000_000)})

    with pytest.raises(ArchiveTooLarge, match="its own size"):
        read_all(bomb, Limits(ratio=100))


def test_a_zip_in_the_zip_is_a_file_like_any_other(memory: Access) -> None:
    inner = zip_of({"../evil.md": b"x"})

    bring(memory, zip_of({"memory/inner.zip": inner}))

    assert everything(memory) == {"/memory/inner.zip": inner}


def test_folders_and_an_empty_archive_are_fine(memory: Access) -> None:
    bring(memory, zip_of({}))
    bring(memory, zip_of({"memory/": b"", "memory/a.md": b"a"}))

    assert everything(memory) == {"/memory/a.md": b"a"}


def test_bytes_before_the_archive_do_no_harm(memory: Access) -> None:
    bring(memory, b"#!/bin/sh\n" + zip_of({"memory/a.md": b"a"}))

    assert everything(memory) == {"/memory/a.md": b"a"}


def read_all(archive: bytes, limits: Limits) -> list[bytes]:
    with Archive(io.BytesIO(archive), limits) as opened:
        return [opened.read(name) for name in opened.names]


def unicode_path(raw: bytes, name: bytes, *, checksum: int | None = None, version: int = 1) -> bytes:
    """The field of Info-ZIP that says what a name is in UTF-8."""
    data = struct.pack("<BL", version, zlib.crc32(raw) if checksum is None else checksum) + name
    return struct.pack("<HH", 0x7075, len(data)) + data


@pytest.mark.parametrize(
    ("raw", "flags", "extra", "name", "warned"),
    [
        ("für.md".encode(), 0x800, b"", "für.md", False),
        ("für.md".encode(), 0, b"", "für.md", False),
        ("日本語.md".encode(), 0, b"", "日本語.md", False),
        (b"f\x81r.md", 0, b"", "für.md", True),
        (b"f\xfcr.md", 0, b"", "fⁿr.md", True),
        (b"plain.md", 0, b"", "plain.md", False),
        (b"f_r.md", 0, unicode_path(b"f_r.md", "für.md".encode()), "für.md", False),
        (b"f\x81r.md", 0, unicode_path(b"f\x81r.md", "für.md".encode()), "für.md", False),
        (b"f_r.md", 0, b"\x01\x00\x00\x00" + unicode_path(b"f_r.md", b"x.md"), "x.md", False),
        (b"f_r.md", 0, unicode_path(b"f_r.md", "für.md".encode(), checksum=7), "f_r.md", False),
        (b"f_r.md", 0, unicode_path(b"f_r.md", "für.md".encode(), version=2), "f_r.md", False),
    ],
)
def test_names_are_read_as_the_archive_says(
    memory: Access, raw: bytes, flags: int, extra: bytes, name: str, warned: bool
) -> None:
    archive = zip_by_hand([(b"notes/" + raw, b"x")] if not extra else [(raw, b"x")], extra=extra, flags=flags)

    report = bring(memory, archive)

    assert set(everything(memory)) == {f"/{name}" if extra else f"/notes/{name}"}
    assert [name in warning for warning in report.warnings] == ([True] if warned else [])


@pytest.mark.parametrize("name", ["../up.md", "/etc/passwd", "a\\b.md", "C:x.md", "a\nb.md", "a\0b.md"])
def test_a_hostile_name_in_the_field_of_the_encoding_is_refused(memory: Access, name: str) -> None:
    archive = zip_by_hand([(b"fine.md", b"x"), GOOD], extra=unicode_path(b"fine.md", name.encode()), flags=0)

    with pytest.raises((ImportRefused, InvalidArchive)):
        bring(memory, archive)

    assert everything(memory) == {}


def test_of_two_files_with_one_name_in_two_encodings_the_first_counts(memory: Access) -> None:
    archive = zip_by_hand([(b"f\x81r.md", b"first"), ("für.md".encode(), b"second")], flags=0)

    report = bring(memory, archive)

    assert everything(memory) == {"/für.md": b"first"}
    assert [file.outcome for file in report.files] == ["created", "refused"]
