"""Router indexes through any backend."""

from collections.abc import Sequence
from datetime import date, datetime

from deepagents.backends.protocol import BackendProtocol

from memsvc.agents.files import read_bytes, write_bytes
from memsvc.agents.transactional import mounted
from memsvc.format import (
    SCAFFOLD,
    IndexRow,
    MemoryCategory,
    index_target,
    parse_index,
    with_row,
)
from memsvc.format.layout import in_utc


def read_index_rows(backend: BackendProtocol, path: str) -> dict[str, IndexRow]:
    """The rows of an index by relative path; none where it does not exist. ValueError when it can't be read."""
    data = read_bytes(mounted(backend), path) or b""
    return parse_index(data.decode(errors="replace"))[1]


def update_index(
    backend: BackendProtocol,
    *,
    category: MemoryCategory,
    file_path: str,
    description: str = "",
    tags: tuple[str, ...] = (),
    when: datetime | None = None,
) -> str:
    """Give a file its row in its router index, or bring that row up to date; answers the path of the index.

    Tags add up, the newest description wins, and "Updated" never goes back.
    """
    served = mounted(backend)
    index, relative = index_target(category, file_path)
    before = read_bytes(served, index)
    after = with_file_recorded(
        index, before, relative, description=description, tags=tags, on=in_utc(when).date()
    )
    if after != before:
        write_bytes(served, index, after)
    return index


def with_file_recorded(
    index: str, data: bytes | None, relative: str, *, description: str, tags: Sequence[str], on: date
) -> bytes:
    """An index's bytes with the row of the file at `relative` brought up to date. A missing index is made."""
    present = SCAFFOLD[index].encode() if data is None else data
    return with_row(present, path=relative, description=description, tags=tags, when=on)
