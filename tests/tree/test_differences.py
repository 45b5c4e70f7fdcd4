"""What is found between two contents, and what that costs."""

from collections.abc import Callable, Sequence

import pytest

from memsvc.tree.differences import differences


class Counted:
    """A block that counts how often blocks are looked at."""

    looks = 0

    def __init__(self, name: str) -> None:
        self.name = name

    def __hash__(self) -> int:
        Counted.looks += 1
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        Counted.looks += 1
        return isinstance(other, Counted) and self.name == other.name


def blocks(names: Sequence[str]) -> list[Counted]:
    return [Counted(name) for name in names]


def every_second_is_new(count: int) -> tuple[list[str], list[str]]:
    return [f"{n}" for n in range(count)], [f"{n}" if n % 2 else f"{n}, new" for n in range(count)]


def one_between_any_two(count: int) -> tuple[list[str], list[str]]:
    return [f"{n}" for n in range(count)], [name for n in range(count) for name in (f"{n}", f"{n}, new")]


def swapped_in_pairs(count: int) -> tuple[list[str], list[str]]:
    return [f"{n}" for n in range(count)], [f"{n ^ 1}" for n in range(count)]


@pytest.mark.parametrize("change", [every_second_is_new, one_between_any_two, swapped_in_pairs])
def test_twice_the_blocks_take_twice_the_looks(
    change: Callable[[int], tuple[list[str], list[str]]],
) -> None:
    def looks(count: int) -> int:
        old, new = change(count)
        Counted.looks = 0
        found = differences(blocks(old), blocks(new))
        # What is no difference is the same on both sides.
        kept = [n for n in range(count) if not any(i1 <= n < i2 for i1, i2, _, _ in found)]
        assert len(kept) >= count // 2 - 1
        return Counted.looks

    assert looks(1000) < 2.5 * looks(500)
