import pytest

from memsvc.format import carried_lines


@pytest.mark.parametrize(
    ("given", "carried", "says"),
    [
        ("note: a: b\n", "note: a: b", {"note": "a: b"}),
        ("summary: a: b\nticket: 007\n", "ticket: 007", {"ticket": "007"}),
        (
            "# why\nnote: @home\nlist:\n  - a\n",
            "# why\nnote: @home\nlist:\n  - a",
            {"note": "@home", "list": ["a"]},
        ),
        # YAML knows more ends of a line than those at which lines are cut.
        ('summary: "a\u2028b"\nk: 1\nz: 2\n', "k: 1\nz: 2", {"k": 1, "z": 2}),
        (
            'k: "a\u2028\u2029\x85b"\nz: 2\ny: 3\n',
            'k: "a\u2028\u2029\x85b"\nz: 2\ny: 3',
            {"k": "a\u2028\u2029\nb", "z": 2, "y": 3},
        ),
    ],
)
def test_lines_that_no_yaml_reader_takes_are_carried_as_they_stand(
    given: str, carried: str, says: dict[str, object]
) -> None:
    lines, metadata = carried_lines(f"---\nid: 01J9ZK8V5S6QW3X2Y1T0R9P8N7\n{given}---\n\n")
    assert (lines, metadata) == (carried, says)


@pytest.mark.parametrize("head", ["", "---\nid: mem_1\nnote: |\n  a\n  ---\n", "---\nid: mem_1\n---\n"])
def test_a_head_without_lines_to_carry_has_none(head: str) -> None:
    assert carried_lines(head) == ("", {})
