import io
import json
import zipfile
from pathlib import Path

import pytest

from memsvc.format.scaffold import SCAFFOLD
from memsvc.transfer.exports import export_directory, export_zip
from memsvc.transfer.names import MANIFEST_NAME
from memsvc.tree import services
from memsvc.tree.access import Access
from memsvc.tree.errors import RevisionNotFound
from tests.transfer.support import bring, everything, exported, put, read_below, unzipped

ODD_FILES = {
    "/memory/a\r\n.md".replace("\r\n", ""): b"\xef\xbb\xbfone\r\ntwo\rthree\x00\n",
    "/memory/Trips/Kyōto 2026.md": "no line end, 日本語 \u2028".encode(),
    "/memory/empty.md": b"",
    "/memory/کتاب\u200cها/ක්\u200dෂණ 👩\u200d🚀 ❤\ufe0f.md": b"spelt with joiners\n",
    "/memory/picture.png": b"\x89PNG\xff\x00",
    "/agents/main/MEMORY.md": b"beside the memory\n",
}


def test_every_file_comes_out_byte_for_byte(memory: Access) -> None:
    put(memory, ODD_FILES)

    files = unzipped(exported(memory))

    assert {name: files[name] for name in (path[1:] for path in ODD_FILES)} == {
        path[1:]: data for path, data in ODD_FILES.items()
    }


def test_the_memory_lies_under_its_folder_and_other_folders_beside_it(memory: Access) -> None:
    services.scaffold(memory)
    put(memory, {"/skills/x/SKILL.md": b"# X\n"})

    assert set(unzipped(exported(memory))) == {path[1:] for path in SCAFFOLD} | {"skills/x/SKILL.md"}


def test_one_revision_always_gives_the_same_bytes(memory: Access) -> None:
    put(memory, {"/memory/a.md": b"one"})
    first = exported(memory)
    put(memory, {"/memory/a.md": b"two", "/memory/b.md": b"new"})

    assert exported(memory, revision=1) == first
    assert exported(memory) == exported(memory) != first


def test_an_earlier_revision_holds_what_there_was_then(memory: Access) -> None:
    put(memory, {"/memory/notes/a.md": b"one", "/memory/notes/b.md": b"gone later"})
    services.delete(memory, "/memory/notes/b.md")

    assert unzipped(exported(memory, revision=2))["memory/notes/b.md"] == b"gone later"
    assert "memory/notes/b.md" not in unzipped(exported(memory))


def test_a_revision_that_there_never_was_is_refused_before_the_first_byte(memory: Access) -> None:
    with pytest.raises(RevisionNotFound):
        export_zip(memory, 7)


def test_an_empty_tree_gives_an_archive_of_nothing(memory: Access) -> None:
    assert unzipped(exported(memory)) == {}


def test_an_access_exports_only_what_it_sees(memory: Access) -> None:
    put(memory, {"/memory/a.md": b"in", "/private/b.md": b"out"})

    seen = Access(tree=memory.tree, actor=memory.actor, prefix="/memory")

    assert "private/b.md" not in unzipped(exported(seen))


def test_the_first_bytes_come_before_the_rest_is_read(memory: Access) -> None:
    put(memory, {f"/memory/{number}.md": b"x" * 1000 for number in range(5)})

    pieces = export_zip(memory)
    first = next(pieces)
    pieces.close()

    assert first.startswith(b"PK\3\4")
    assert len(first) < 1000


def test_an_export_that_nobody_reads_to_the_end_can_be_closed(memory: Access) -> None:
    put(memory, {"/memory/a.md": b"one"})
    pieces = export_zip(memory)

    pieces.close()
    pieces.close()

    services.write_file(memory, "/memory/a.md", b"the tree is free")


def test_the_manifest_says_what_is_in_it(memory: Access) -> None:
    put(memory, {"/memory/a.md": b"one"})

    with zipfile.ZipFile(io.BytesIO(exported(memory))) as archive:
        manifest = json.loads(archive.read(MANIFEST_NAME))

    assert (manifest["format"], manifest["tree"], manifest["revision"]) == ("memsvc-export/1", "default", 1)
    assert len(manifest["sha256"]["memory/a.md"]) == 64


@pytest.mark.parametrize(
    "path",
    [
        "/memory/back\\slash.md",
        "/C:/windows.md",
        "/memory/..\\..\\up.md",
        "/memory/bell\x07.md",
        "/memory/turn\u202eround.md",
        "/memory/trailing .",
        "/memory/nul.md",
        f"/{MANIFEST_NAME}",
    ],
)
def test_a_name_that_could_be_misread_is_replaced_and_comes_back(
    memory: Access, other: Access, path: str
) -> None:
    # Some of these are no names for new files any more.
    services.import_files(memory, [(path, b"kept")])
    archive = exported(memory)

    names = [name for name in unzipped(archive) if not name.endswith("index.md")]
    bring(other, archive)

    assert path[1:] not in names
    assert all("\\" not in name and ":" not in name and name.isprintable() for name in names)
    assert everything(other)[path] == b"kept"


def test_names_that_differ_in_case_only_do_not_overwrite_each_other(memory: Access, other: Access) -> None:
    put(
        memory,
        {"/memory/A.md": b"upper", "/memory/a.md": b"lower", "/memory/é.md": b"1", "/memory/É.md": b"2"},
    )
    archive = exported(memory)

    names = [name.casefold() for name in unzipped(archive)]
    bring(other, archive)

    assert len(set(names)) == len(names)
    assert everything(other) == everything(memory)


def test_a_directory_gets_the_same_files_as_a_zip(memory: Access, tmp_path: Path) -> None:
    put(memory, ODD_FILES)

    count = export_directory(memory, tmp_path / "out")

    assert read_below(tmp_path / "out") == unzipped(exported(memory))
    assert count == len(read_below(tmp_path / "out"))


def test_a_directory_with_something_in_it_is_left_alone(memory: Access, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")

    with pytest.raises(FileExistsError):
        export_directory(memory, tmp_path)

    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]
