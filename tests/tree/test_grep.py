import pytest

from memsvc.format.globs import InvalidGlob
from memsvc.tree import reads, services
from memsvc.tree.access import Access
from tests.tree.support import FACTS, access_to, add

pytestmark = pytest.mark.django_db


@pytest.fixture
def filled(memory: Access) -> Access:
    files = {
        "/a.md": b"one\r\nneedle 1\rtwo needle",
        "/b/c.txt": b"needle 2\n",
        "/b/d.md": b"% _ \\ [x]\n",
        "/z.bin": b"needle \xff",
    }
    services.upload_files(memory, list(files.items()))
    return memory


def found(access: Access, pattern: str, **options: object) -> list[tuple[str, int, str]]:
    return [(each.path, each.line, each.text) for each in reads.grep(access, pattern, **options).items]  # type: ignore[arg-type]  # as given


def test_lines_come_by_path_and_number_without_their_line_ends(filled: Access) -> None:
    assert found(filled, "needle") == [
        ("/a.md", 2, "needle 1"),
        ("/a.md", 3, "two needle"),
        ("/b/c.txt", 1, "needle 2"),
    ]


@pytest.mark.parametrize("pattern", ["% _", "_ \\", "[x]"])
def test_a_pattern_is_text_and_nothing_else(filled: Access, pattern: str) -> None:
    assert found(filled, pattern) == [("/b/d.md", 1, "% _ \\ [x]")]
    assert found(filled, "n%dle") == found(filled, "N.*") == []


def test_case_counts(filled: Access) -> None:
    assert found(filled, "Needle") == []


def test_a_folder_a_file_and_a_glob_narrow_it(filled: Access) -> None:
    assert [each[0] for each in found(filled, "needle", folder="/b")] == ["/b/c.txt"]
    assert [each[0] for each in found(filled, "needle", folder="/b/c.txt")] == ["/b/c.txt"]
    assert [each[0] for each in found(filled, "needle", glob="*.txt")] == ["/b/c.txt"]
    assert found(filled, "needle", folder="/missing") == []


def test_a_bad_glob_is_refused(filled: Access) -> None:
    with pytest.raises(InvalidGlob):
        reads.grep(filled, "needle", glob="../*")


def test_the_limit_says_whether_there_was_more(filled: Access) -> None:
    two, three = reads.grep(filled, "needle", max_count=2), reads.grep(filled, "needle", max_count=3)

    assert (len(two.items), two.truncated) == (2, True)
    assert (len(three.items), three.truncated) == (3, False)


def test_an_empty_pattern_matches_every_line(filled: Access) -> None:
    assert len(found(filled, "", folder="/a.md")) == 3


@pytest.mark.parametrize("pattern", ["a\nb", "\r", "\ud800"])
def test_what_no_line_can_hold_is_nowhere(filled: Access, pattern: str) -> None:
    assert found(filled, pattern) == []


def test_a_nul_is_found(memory: Access) -> None:
    services.write_file(memory, "/a.md", b"a\0b\n")

    assert found(memory, "a\0b") == [("/a.md", 1, "a\0b")]
    assert found(memory, "a") == [("/a.md", 1, "a\0b")]


def test_the_line_that_supersedes_an_entry_is_found(memory: Access) -> None:
    old = add(memory, "old").entry.entry_id
    new = add(memory, "new", supersedes=old).entry.entry_id

    (match,) = found(memory, f"superseded_by: {new}")

    assert match[0] == FACTS
    assert found(memory, "superseded_by:", revision=1) == []


def test_the_past_is_searched_as_it_was(filled: Access) -> None:
    services.edit_file(filled, "/b/c.txt", "needle", "thread")
    services.move(filled, "/a.md", "/moved.md")

    assert [each[0] for each in found(filled, "needle", revision=1)] == ["/a.md", "/a.md", "/b/c.txt"]
    assert [each[0] for each in found(filled, "needle")] == ["/moved.md", "/moved.md"]


def test_only_the_part_that_is_open_is_searched(filled: Access) -> None:
    assert found(access_to(filled.tree.tenant, prefix="/b"), "needle") == [("/b/c.txt", 1, "needle 2")]
