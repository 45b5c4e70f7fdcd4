import hashlib

from memsvc.format import (
    PROCEDURE_TEMPLATE,
    SCAFFOLD,
    cut,
    is_memory_file,
    is_router,
    parse_index,
    router_of,
)

# Path, bytes and the first digits of the sha256, in the order in which the files are made.
FILES = """
/memory/index.md 529 c576d2ef42ed67e7
/memory/preferences.md 164 5e76d2e7ce626b15
/memory/episodic_memory/index.md 394 e090f16b8524a3ee
/memory/semantic_memory/index.md 470 efb4e54a2c52c823
/memory/procedural_memory/index.md 224 ad23daf539e701d4
/memory/semantic_memory/facts.md 51 dfc05f6f9c7f11dd
/memory/semantic_memory/rules.md 66 6a9c45ac111cf351
"""


def test_the_scaffold_is_that_of_the_format_byte_for_byte() -> None:
    made = [
        f"{path} {len(text.encode())} {hashlib.sha256(text.encode()).hexdigest()[:16]}"
        for path, text in SCAFFOLD.items()
    ]
    assert made == FILES.split("\n")[1:-1]


def test_the_scaffold_has_a_row_for_every_file_and_no_entries() -> None:
    for path, text in SCAFFOLD.items():
        if router := router_of(path):
            index, relative = router
            assert relative in parse_index(SCAFFOLD[index])[1]
        assert is_router(path) != is_memory_file(path)
        assert len(cut(text.encode())) == 1


def test_the_procedure_template_has_six_places() -> None:
    names = ["title", "when_to_use", "preconditions", "steps", "tools", "known_failures"]
    body = PROCEDURE_TEMPLATE.format(**{name: f"<{name}>" for name in names})
    assert body.startswith("# <title>\n\n## When to use\n\n<when_to_use>\n\n## Preconditions\n\n")
    assert body.endswith("## Known failures\n\n<known_failures>\n")
