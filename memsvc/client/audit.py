"""Whether an exported audit is whole: `python -m memsvc.client.audit FILE`. Needs neither a server nor a key."""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from memsvc.contract.audit import AuditEventRead, Head, faults, heads_as_text, heads_in
from memsvc.contract.wire import from_json


def events_in(path: Path) -> Iterator[AuditEventRead]:
    """The events of an export, a line each. Raises ValueError for what is no event."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield from_json(AuditEventRead, json.loads(line))


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m memsvc.client.audit",
        description="Check an exported audit: a line for each fault, and 1 as the exit code when there is any.",
    )
    parser.add_argument("file", type=Path, help="what GET /v1/audit.jsonl gave")
    parser.add_argument(
        "--heads",
        type=Path,
        help="a file that keeps where the chains ended: what was there at the last check must be there still, so that "
        "nobody can take away the end of a chain either",
    )
    given = parser.parse_args()
    heads: dict[str, Head] = {}
    try:
        known = heads_in(given.heads.read_text("utf-8")) if given.heads and given.heads.exists() else []
        found = [*faults(events_in(given.file), heads, known)]
    except (OSError, ValueError) as error:
        print(f"This can't be checked: {error}", file=sys.stderr)
        return 2
    for fault in found:
        print(fault)
    if found:
        return 1
    print(f"Whole: {sum(head.number for head in heads.values())} events in {len(heads)} chains.")
    if given.heads:
        given.heads.write_text(heads_as_text(heads), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
