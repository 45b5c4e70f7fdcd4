"""What the documents name is there: links, files and folders of the code, and what is said to stand in them."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = sorted(
    [
        *ROOT.glob("docs/**/*.md"),
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "tests/README.md")),
    ]
)
LINK = re.compile(r"\]\(([^)\s]+)\)")
FOLDERS = "memsvc|tenants|tests|migrations|benchmarks|examples|docs"
PATH = rf"(?:{FOLDERS})(?:/[\w.*/-]*)?"
NAMED_PATH = re.compile(rf"`({PATH})`")
# "`Access` in `memsvc/tree/access.py`", also of two: "`restore` and `undo` in …".
NAMED_IN = re.compile(rf"`([\w.]+)`(?:\s+and\s+`([\w.]+)`)?\s+in\s+`({PATH})`")
SOURCES = {".py", ".sql"}

documents = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))


@documents
def test_links_lead_somewhere(document: Path) -> None:
    broken = []
    for target in LINK.findall(document.read_text()):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (document.parent / name).resolve() if name else document
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)

    assert broken == []


@documents
def test_files_and_folders_that_are_named_are_there(document: Path) -> None:
    named = NAMED_PATH.findall(document.read_text())

    assert [path for path in named if not any(ROOT.glob(path))] == []


@documents
def test_what_is_said_to_stand_in_a_file_stands_there(document: Path) -> None:
    named = NAMED_IN.findall(document.read_text())

    found = [(name, path) for *names, path in named for name in names if name]
    assert [(name, path) for name, path in found if not defines(ROOT / path, name.rpartition(".")[2])] == []


def defines(place: Path, name: str) -> bool:
    """Whether a file, or one of a folder, defines a name: a class, function, field, parameter, or table of a query."""
    defining = re.compile(
        rf"\b(?:def|class|type) {name}\b|(?:^|[(,]) *{name}(?:: | = )|^{name} AS\b", re.MULTILINE
    )
    files = [place] if place.is_file() else [each for each in place.rglob("*") if each.suffix in SOURCES]
    return any(defining.search(file.read_text()) for file in files)


def anchors(document: Path) -> set[str]:
    """The headings of a document as its links name them."""
    headings = re.findall(r"^#+ (.*)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
