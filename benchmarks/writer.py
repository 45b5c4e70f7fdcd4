"""A process that writes entries into one tree: says "ready", waits for a line, writes, says "done"."""

import sys
from uuid import UUID

import django

django.setup()

from benchmarks.samples import draft  # noqa: E402  after Django is set up
from memsvc.database.tenancy import tenant_transaction  # noqa: E402
from memsvc.tree import services  # noqa: E402
from memsvc.tree.access import Access  # noqa: E402
from memsvc.tree.models import Tree  # noqa: E402
from tenants.actors import SYSTEM  # noqa: E402


def main(tenant_id: str, tree_id: str, writes: int) -> None:
    with tenant_transaction(UUID(tenant_id)):
        access = Access(Tree.objects.get(pk=tree_id), SYSTEM)
    services.add_entry(access, draft(0))
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(writes):
        services.add_entry(access, draft(number))
    print("done", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
