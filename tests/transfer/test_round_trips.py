"""Trees of other people come in and go out byte for byte, and hostile archives get the answer of their class."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from memsvc.format import FormatError
from memsvc.format.paths import canonical_path
from memsvc.transfer.exports import export_directory
from memsvc.transfer.imports import import_directory
from memsvc.tree.access import Access
from memsvc.tree.errors import TreeError
from tests.transfer.support import bring, everything, exported, read_below, unzipped

OWN_TREES = Path(__file__).parents[1] / "format" / "trees"
SHARED = Path(__file__).parents[2].parent / "shared"


def trees() -> list[Path]:
    shared = sorted(SHARED.glob("trees/*/memory"))
    return sorted(OWN_TREES.glob("*/memory")) + shared


@pytest.mark.parametrize("folder", trees(), ids=lambda folder: folder.parent.name)
def test_a_tree_comes_out_as_it_went_in(memory: Access, other: Access, folder: Path, tmp_path: Path) -> None:
    files = {f"memory/{name}": data for name, data in read_below(folder).items()}

    import_directory(memory, folder)
    archive = exported(memory)
    bring(other, archive)
    export_directory(other, tmp_path / "out")

    assert unzipped(archive) == files
    assert read_below(tmp_path / "out") == files


def test_the_shared_trees_are_there() -> None:
    if not (SHARED / "trees").is_dir():
        pytest.skip("the shared sample trees are not beside this checkout")
    assert len(trees()) >= 7


def test_hostile_archives_get_the_answer_of_their_class(
    memory: Access, other: Access, tmp_path: Path
) -> None:
    script = SHARED / "hostile" / "make_zips.py"
    if not script.is_file():
        pytest.skip("the shared hostile archives are not beside this checkout")
    subprocess.run([sys.executable, "-B", str(script), str(tmp_path)], check=True, stdout=subprocess.DEVNULL)
    manifest = json.loads((tmp_path / "manifest.json").read_text())

    wrong = {
        name: verdict
        for name, case in manifest.items()
        if (verdict := _verdict(memory, (tmp_path / name).read_bytes())) != case["expect"]
        and case["expect"] != "safe"
    }

    assert wrong == {}
    assert all(canonical_path(path) == path for path in everything(memory))
    assert everything(other) == {}


def _verdict(access: Access, archive: bytes) -> str:
    before = everything(access)
    try:
        report = bring(access, archive)
    except (TreeError, FormatError):
        assert everything(access) == before
        return "reject"
    stored = everything(access)
    assert all(file.path in stored for file in report.files if file.outcome != "skipped")
    return "accept"
