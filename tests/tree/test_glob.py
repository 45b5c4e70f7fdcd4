import pytest

from memsvc.format.globs import InvalidGlob
from memsvc.tree import reads, services
from memsvc.tree.access import Access
from tests.tree.support import access_to

pytestmark = pytest.mark.django_db


@pytest.fixture
def filled(memory: Access) -> Access:
    files = ["/a.md", "/b/c.md", "/b/c.txt", "/b/d/e.md", "/b/.x/f.md", "/b/.g.md"]
    services.upload_files(memory, [(path, b"text\n") for path in files])
    return memory


@pytest.mark.parametrize(
    ("pattern", "folder", "expected"),
    [
        ("*.md", "/", ["/a.md", "/b/.x/f.md", "/b/c.md", "/b/d/e.md"]),
        ("/b/*.md", "/", ["/b/c.md"]),
        ("b/**/*.md", "/", ["/b/c.md", "/b/d/e.md"]),
        ("**/*", "/b", ["/b/c.md", "/b/c.txt", "/b/d/e.md"]),
        ("c.{md,txt}", "/b", ["/b/c.md", "/b/c.txt"]),
        (".*.md", "/", ["/b/.g.md"]),
        ("*", "/b/c.md", ["/b/c.md"]),
        ("*.md", "/missing", []),
    ],
)
def test_files_match_by_their_path_below_the_folder(
    filled: Access, pattern: str, folder: str, expected: list[str]
) -> None:
    assert [each.path for each in reads.glob(filled, pattern, folder=folder)] == expected


def test_a_pattern_that_climbs_is_refused(filled: Access) -> None:
    with pytest.raises(InvalidGlob):
        reads.glob(filled, "../*")


def test_the_past_is_matched_as_it_was(filled: Access) -> None:
    services.move(filled, "/b", "/z")

    assert [each.path for each in reads.glob(filled, "c.md")] == ["/z/c.md"]
    assert [each.path for each in reads.glob(filled, "c.md", revision=1)] == ["/b/c.md"]


def test_only_the_part_that_is_open_is_matched(filled: Access) -> None:
    agent = access_to(filled.tree.tenant, prefix="/b/d")

    assert [each.path for each in reads.glob(agent, "*.md")] == ["/b/d/e.md"]


@pytest.mark.parametrize("pattern", ["**/a/**/a/**/b", "{**/a,**/b}/**/c"])
def test_a_pattern_that_would_take_for_ever_on_deep_paths_is_refused(filled: Access, pattern: str) -> None:
    with pytest.raises(InvalidGlob, match="use fewer"):
        reads.glob(filled, pattern)


def test_a_pattern_may_cross_folders_twice_and_end_anywhere(filled: Access) -> None:
    assert [each.path for each in reads.glob(filled, "**/b/**/d/**")] == ["/b/d/e.md"]
