"""Two contents compared, line by line or block by block.

Lines that stand once on either side are matched first (a "patience" comparison), which keeps the cost near linear
whatever the contents are; what lies between them is compared in full only where it is short.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from difflib import SequenceMatcher

# Beyond this many pairs of lines a stretch without a line of its own counts as replaced from end to end.
_MAX_PAIRS = 40_000
_MAX_DEPTH = 4

type Range = tuple[int, int, int, int]


def lines_of(content: bytes) -> list[bytes]:
    """The lines of a content, each with its end; the last may lack one.

    Only "\\n" ends a line here, as for every tool that reads a unified diff.
    """
    pieces = content.split(b"\n")
    lines = [piece + b"\n" for piece in pieces[:-1]]
    return [*lines, pieces[-1]] if pieces[-1] else lines


def differences[Text: Hashable](old: Sequence[Text], new: Sequence[Text]) -> list[Range]:
    """The ranges in which two lists of lines, or blocks, differ, as (old from, old to, new from, new to), in order."""
    found: list[Range] = []
    for i1, i2, j1, j2 in _differing(old, new, (0, len(old), 0, len(new)), 0):
        if found and (found[-1][1], found[-1][3]) == (i1, j1):
            i1, _, j1, _ = found.pop()
        found.append((i1, i2, j1, j2))
    return found


def carried[Text: Hashable, Mark](
    known: Sequence[tuple[Text, Mark]], lines: Sequence[Text], mark: Mark
) -> list[tuple[Text, Mark]]:
    """Lines with their marks: those that were there before keep theirs, the others get this one."""
    result: list[tuple[Text, Mark]] = []
    done = 0
    for i1, i2, j1, j2 in differences([line for line, _ in known], lines):
        result += known[done:i1]
        result += [(line, mark) for line in lines[j1:j2]]
        done = i2
    return [*result, *known[done:]]


def _differing[Text: Hashable](
    old: Sequence[Text], new: Sequence[Text], whole: Range, depth: int
) -> Iterator[Range]:
    i1, i2, j1, j2 = whole
    while i1 < i2 and j1 < j2 and old[i1] == new[j1]:
        i1, j1 = i1 + 1, j1 + 1
    while i1 < i2 and j1 < j2 and old[i2 - 1] == new[j2 - 1]:
        i2, j2 = i2 - 1, j2 - 1
    if i1 == i2 or j1 == j2:
        if i1 < i2 or j1 < j2:
            yield i1, i2, j1, j2
        return
    anchors = _anchors(old[i1:i2], new[j1:j2]) if depth < _MAX_DEPTH else []
    if not anchors and (i2 - i1) * (j2 - j1) > _MAX_PAIRS:
        yield i1, i2, j1, j2
        return
    if not anchors:
        matcher = SequenceMatcher(None, old[i1:i2], new[j1:j2], autojunk=False)
        for tag, a1, a2, b1, b2 in matcher.get_opcodes():
            if tag != "equal":
                yield i1 + a1, i1 + a2, j1 + b1, j1 + b2
        return
    start_i, start_j = i1, j1
    for i, j in [*((i1 + i, j1 + j) for i, j in anchors), (i2, j2)]:
        if start_i < i or start_j < j:
            yield from _differing(old, new, (start_i, i, start_j, j), depth + 1)
        start_i, start_j = i + 1, j + 1


def _anchors[Text: Hashable](old: Sequence[Text], new: Sequence[Text]) -> list[tuple[int, int]]:
    """The longest run of pairs, ascending on both sides, of lines that stand once on either side."""
    once_old, once_new = Counter(old), Counter(new)
    place = {line: j for j, line in enumerate(new) if once_new[line] == 1}
    pairs = [(i, place[line]) for i, line in enumerate(old) if once_old[line] == 1 and line in place]
    ends: list[int] = []
    last: list[int] = []
    before: list[int | None] = []
    for number, (_, j) in enumerate(pairs):
        length = bisect_left(ends, j)
        ends[length : length + 1] = [j]
        last[length : length + 1] = [number]
        before.append(last[length - 1] if length else None)
    chain: list[tuple[int, int]] = []
    at = last[-1] if last else None
    while at is not None:
        chain.append(pairs[at])
        at = before[at]
    return chain[::-1]
