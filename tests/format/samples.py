"""The sample trees: the project's own, and those beside the checkout where there are any."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

OWN = Path(__file__).parent / "trees"
SHARED = Path(__file__).parents[2] / "../shared/trees"


@dataclass(frozen=True)
class SampleTree:
    folder: Path
    expected: dict[str, Any]

    def files(self) -> dict[str, bytes]:
        paths = sorted(path for path in (self.folder / "memory").rglob("*") if path.is_file())
        return {f"/{path.relative_to(self.folder).as_posix()}": path.read_bytes() for path in paths}

    def memory_files(self) -> dict[str, dict[str, Any]]:
        return {path: file for path, file in self.expected["files"].items() if file.get("memory_file")}


def load(folder: Path) -> SampleTree:
    return SampleTree(folder, json.loads((folder / "expected.json").read_text(encoding="utf-8")))


def own_trees() -> list[Any]:
    return _params(OWN, "*")


def all_trees(pattern: str) -> list[Any]:
    """Every tree whose name matches; those beside the checkout are skipped, with a reason, where they are absent."""
    shared = _params(SHARED, pattern)
    absent = pytest.param(
        None, id=f"shared-{pattern}", marks=pytest.mark.skip("no sample trees beside the checkout")
    )
    return [*_params(OWN, pattern), *(shared or [absent])]


def _params(root: Path, pattern: str) -> list[Any]:
    return [
        pytest.param(load(path.parent), id=path.parent.name)
        for path in sorted(root.glob(f"{pattern}/expected.json"))
    ]
