import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsvc.format import (
    InvalidPath,
    ancestors_of,
    canonical_folder,
    canonical_path,
    composed_path,
    is_memory_file,
    is_router,
    parent_of,
    router_of,
    spelt_path,
    strict_path,
    visible_path,
)

MALICIOUS = Path(__file__).parents[2] / "../shared/hostile/malicious.json"


@pytest.mark.parametrize(
    "text", ["/memory/a.md", "memory/a.md", "//memory///a.md", "/./memory/./a.md", "/memory/a.md/"]
)
def test_a_path_has_one_spelling(text: str) -> None:
    assert canonical_path(text) == "/memory/a.md"


def test_a_path_is_composed() -> None:
    assert canonical_path("/memory/cafe\u0301.md") == "/memory/caf\u00e9.md"


@pytest.mark.parametrize(
    "name",
    [
        "v1..v2.md",
        "...md",
        "..a",
        "a b",
        "it's",
        '"q"',
        "100%",
        "a_b",
        "*",
        "?",
        "[x]",
        "{x}",
        "~",
        "\\",
        "%2e%2e",
        "京都.md",
    ],
)
def test_unusual_names_are_literal(name: str) -> None:
    assert canonical_path(f"/memory/{name}") == f"/memory/{name}"


@pytest.mark.parametrize(
    "text",
    [
        *["", "/", "//", "/.", "..", "/memory/..", "/memory/../a.md", "/a/../b.md"],
        *["/a\0.md", "/a\ud800.md", "/a\nb", "/a\rb", "/a\u2028b", "/a\x85b"],
        *["/" + "x" * 256, "/" + "é" * 128, "/" + "a/" * 512 + "b", "/" + "x" * 10_000_000],
    ],
    ids=lambda text: ascii(text[:20]),
)
def test_what_is_no_path_is_refused(text: str) -> None:
    with pytest.raises(InvalidPath) as refusal:
        canonical_path(text)
    assert refusal.value.code == "invalid_path"
    assert len(str(refusal.value)) < 500


@pytest.mark.parametrize("value", [None, 7, True, ["/memory/a.md"], b"/memory/a.md"])
def test_a_path_is_text(value: Any) -> None:
    with pytest.raises(InvalidPath, match="must be text"):
        canonical_path(value)


@pytest.mark.parametrize("text", [None, "", "/", "//", "/./"])
def test_the_root_has_many_names(text: str) -> None:
    assert canonical_folder(text) == "/"


def test_a_folder_has_no_trailing_slash() -> None:
    assert canonical_folder("memory/episodic_memory/") == "/memory/episodic_memory"
    with pytest.raises(InvalidPath):
        canonical_folder("/memory/../")


@given(st.text(st.characters(), max_size=40))
def test_the_canonical_form_of_a_canonical_path_is_itself(text: str) -> None:
    try:
        path = canonical_path(text)
    except InvalidPath:
        return
    assert canonical_path(path) == canonical_folder(path) == spelt_path(path) == path
    assert unicodedata.is_normalized("NFC", path)
    assert parent_of(path) == (
        [*ancestors_of(path), "/"][-1] if parent_of(path) == "/" else ancestors_of(path)[-1]
    )


@pytest.mark.parametrize(
    "text",
    [
        *["memory/a.md", "//memory/a.md", "/memory/./a.md", "/memory/a.md/"],
        *[
            "/memory/a\tb.md",
            "/memory/\x1b[31m.md",
            "/memory/a\x7f.md",
            "/memory/a\u2028b.md",
            "/memory/a\ue000.md",
        ],
        *[
            "/memory/invoice\u202egpj.md",
            "/memory/me\u200bmory.md",
            "/memory/a\ufeff.md",
            "/memory/a\u00adb.md",
        ],
        *["/memory/\u3164.md", "/memory/a\u0378.md"],
        *["/memory/\uff0e\uff0e/a.md", "/memory/\u2024\u2024/a.md", "/memory/a\uff0fb.md"],
        "/memory/" + "d/" * 300 + "x.md",
    ],
    ids=ascii,
)
def test_a_visible_path_hides_nothing(text: str) -> None:
    with pytest.raises(InvalidPath):
        visible_path(text)
    with pytest.raises(InvalidPath):
        strict_path(text)


@pytest.mark.parametrize(
    "text",
    [
        "/memory\\a.md",
        "C:\\windows\\win.ini",
        "/memory/ a.md",
        "/memory/a.md ",
        "/memory/a\uff3cb.md",
        "/ /a.md",
    ],
)
def test_a_strict_path_can_be_held_by_every_system(text: str) -> None:
    with pytest.raises(InvalidPath):
        strict_path(text)


@pytest.mark.parametrize(
    "text",
    [
        *[
            "/memory/a.md",
            "/etc/passwd",
            "/memoryevil/a.md",
            "/a/b c.md",
            "/memory/v1..2.md",
            "/memory/CON.md",
        ],
        *[
            "/memory/%2e%2e/x.md",
            "/memory/*.md",
            "/memory/'; drop table memfile; --.md",
            "/memory/{{7*7}}.md",
        ],
        *[
            "/memory/\u0440references.md",
            "/Trips/Kyōto 2026.md",
            "/memory/a\u3000b.md",
            "/memory/🗓\ufe0f today.md",
        ],
        "/memory/.obsidian/app.json",
    ],
    ids=ascii,
)
def test_a_strict_path_takes_every_honest_name(text: str) -> None:
    assert strict_path(text) == text


def test_a_strict_path_is_composed_not_refused() -> None:
    assert strict_path("/memory/cafe\u0301.md") == "/memory/caf\u00e9.md"


@pytest.mark.parametrize(
    "name",
    [
        *[
            "می\u200cخواهم",
            "ر\u200cو",
            "ܫ\u200cܠ",
            "क्\u200dष",
            "ක්\u200dෂ",
            "ស្រី\u200c៊",
            "အ\u200bက",
            "ག\u200cད",
        ],
        # Behind a virama a joiner may end a word.
        *["അവന്\u200d.md", "ಕ್\u200c", "స్\u200c notes"],
        *["ᠮᠣᠩᠭᠣᠯ\u180eᠠ", "ᠭ\u180bᠠ", "葛\U000e0100飾", "葛\ufe00", "\u0600۱۲"],
        *[
            "👨\u200d👩\u200d👧",
            "🏳\ufe0f\u200d🌈 pride",
            "👩🏽\u200d❤\ufe0f\u200d👨🏼",
            "🙂\u200d↔\ufe0f",
            "☕\ufe0e",
        ],
        *[
            "1\ufe0f\u20e3 Inbox",
            "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
            "\U0001fae9",
        ],
    ],
    ids=ascii,
)
def test_what_nobody_sees_may_spell(name: str) -> None:
    assert strict_path(f"/memory/{name}") == composed_path(f"/memory/{name}") == f"/memory/{name}"


@pytest.mark.parametrize(
    "name",
    [
        *[
            "a\u200db",
            "\u200da",
            "a\u200d",
            "\u200d",
            "Ж\u200dЖ",
            "漢\u200d字",
            "א\u200dא",
            "한\u200c글",
            "1\u200c2",
        ],
        *[
            "می\u200c",
            "\u200cمی",
            "می\u200c.md",
            "می\u200c خ",
            "می\u200c\u200dخ",
            "می\u200ca",
            "5\u200cخ",
            "क\u200dک",
        ],
        *[
            "क्\u200d\u200dष",
            "می\u200bخ",
            "a\u180bb",
            "a\u180eb",
            "a\ufe0f.md",
            "a\U000e0100",
            "葛\U000e0100\U000e0100",
        ],
        *[
            "👨\u200d",
            "\u200d👨",
            "👨\u200d\u200d👩",
            "👨\u200da",
            "❤\ufe0f\ufe0f",
            "1\ufe0f",
            "می\u200f",
            "می\u061cخ",
        ],
        *["a\U000e0067", "🏴\U000e0067\U000e0062\U000e007f", "a\u034fb", "a\u2060b", "ག\u2800"],
    ],
    ids=ascii,
)
def test_what_nobody_sees_is_refused_where_it_only_deceives(name: str) -> None:
    for rule in (visible_path, composed_path, strict_path):
        with pytest.raises(InvalidPath):
            rule(f"/memory/{name}")


def malicious_paths() -> list[Any]:
    if not MALICIOUS.exists():
        return [
            pytest.param(None, marks=pytest.mark.skip("no malicious inputs beside the checkout"), id="absent")
        ]
    cases = json.loads(MALICIOUS.read_text(encoding="utf-8"))["cases"]
    rejected = [case for case in cases if case["group"] == "path" and case["expect"] == "reject"]
    return [pytest.param(built(case["value"]), id=case["id"]) for case in rejected]


def built(value: Any) -> Any:
    if isinstance(value, dict) and "concat" in value:
        return "".join(built(part) for part in value["concat"])
    if isinstance(value, dict) and "repeat" in value:
        text, times = value["repeat"]
        return text * times
    return value


@pytest.mark.parametrize("value", malicious_paths())
def test_every_malicious_path_is_refused(value: Any) -> None:
    # A folder's spelling is refused where a file's name is expected.
    with pytest.raises(InvalidPath):
        visible_path(value)


@pytest.mark.parametrize("text", ["/a", "/Straße/新聞.md", "/a b", "/..a", "/a\\b", "/d" * 20])
def test_a_composed_path_is_returned_as_it_is(text: str) -> None:
    assert composed_path(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/",
        "a",
        "/a/",
        "//a",
        "/a/./b",
        "/a/../b",
        "/e\u0301",
        "/a\tb",
        "/a\u200db",
        "/a\u2028b",
        "/a\u0085",
        "/a\ue000",
        "/d" * 21,
    ],
)
def test_a_composed_path_is_refused_and_not_mended(text: str) -> None:
    with pytest.raises(InvalidPath):
        composed_path(text)


def test_folders_above_a_path() -> None:
    assert parent_of("/memory/a.md") == "/memory"
    assert parent_of("/a.md") == "/"
    assert ancestors_of("/memory/x/a.md") == ["/memory", "/memory/x"]
    assert ancestors_of("/a.md") == []


@pytest.mark.parametrize(
    ("path", "holds_entries"),
    [
        ("/memory/semantic_memory/facts.md", True),
        ("/memory/Trips/Kyōto 2026.md", True),
        ("/agents/main/MEMORY.md", True),
        ("/memory/.hidden.md", True),
        ("/memory/index.md", False),
        ("/memory/Trips/index.md", False),
        ("/memory/.obsidian/templates/x.md", False),
        ("/.git/x.md", False),
        ("/memory/board.canvas", False),
        ("/memory/notes.MD", False),
        ("/memory/notes.txt", False),
    ],
)
def test_which_files_hold_entries(path: str, holds_entries: bool) -> None:
    assert is_memory_file(path) is holds_entries


@pytest.mark.parametrize(
    ("path", "router"),
    [
        ("/memory/semantic_memory/facts.md", ("/memory/semantic_memory/index.md", "facts.md")),
        (
            "/memory/episodic_memory/events/2026-08.md",
            ("/memory/episodic_memory/index.md", "events/2026-08.md"),
        ),
        ("/memory/procedural_memory/sub/index.md", ("/memory/procedural_memory/index.md", "sub/index.md")),
        ("/memory/preferences.md", ("/memory/index.md", "preferences.md")),
        ("/memory/Trips/a.png", ("/memory/index.md", "Trips/a.png")),
        ("/memory/semantic_memory", ("/memory/index.md", "semantic_memory")),
        ("/memory/index.md", None),
        ("/memory/semantic_memory/index.md", None),
        ("/memory/.hidden.md", None),
        ("/memory/.obsidian/app.json", None),
        ("/memory/a/.b/c.md", None),
        ("/memoryevil/a.md", None),
        ("/index.md", None),
        ("/skills/x/SKILL.md", None),
    ],
)
def test_which_router_has_a_row_for_a_file(path: str, router: tuple[str, str] | None) -> None:
    assert router_of(path) == router


def test_there_are_four_routers() -> None:
    kinds = ["episodic_memory", "semantic_memory", "procedural_memory"]
    assert is_router("/memory/index.md")
    assert all(is_router(f"/memory/{kind}/index.md") for kind in kinds)
    assert not is_router("/memory/Trips/index.md")
    assert not is_router("/index.md")
