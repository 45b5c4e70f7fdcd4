"""A shape of the wire is defined once."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]


def classes() -> Iterator[tuple[str, str]]:
    for file in (*ROOT.glob("memsvc/**/*.py"), *ROOT.glob("tenants/**/*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ClassDef):
                yield node.name, str(file.relative_to(ROOT))


def test_no_class_of_the_contract_is_defined_a_second_time() -> None:
    places = defaultdict(list)
    for name, file in classes():
        places[name].append(file)

    twice = {
        name: files
        for name, files in places.items()
        if len(files) > 1 and any(file.startswith("memsvc/contract/") for file in files)
    }

    assert twice == {}
