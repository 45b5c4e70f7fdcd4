"""What the tests of the tree ask for again and again."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import F

from memsvc.contract.entries import EntryWritten
from memsvc.contract.requests import EntryDraft
from memsvc.database.rights import OWNER, connected_as
from memsvc.database.tenancy import tenant_transaction
from memsvc.format import MemoryCategory, MemoryKind
from memsvc.tree import reads, services
from memsvc.tree.access import Access
from memsvc.tree.models import Block, File, Revision, Tree
from memsvc.tree.trees import tree_of
from tenants.actors import Actor, ActorKind
from tenants.models import Tenant

FACTS = "/memory/semantic_memory/facts.md"
RULES = "/memory/semantic_memory/rules.md"
SEMANTIC_INDEX = "/memory/semantic_memory/index.md"
PROCEDURAL_INDEX = "/memory/procedural_memory/index.md"
ROOT_INDEX = "/memory/index.md"

type AssertNumQueries = Callable[[int], AbstractContextManager[Any]]


def access_to(tenant: Tenant, tree: str = "default", *, prefix: str = "/") -> Access:
    actor = Actor(ActorKind.KEY, f"key-of-{tenant.slug}", f"agent of {tenant.name}")
    return Access(tree_of(tenant, tree), actor, prefix=prefix)


def draft(body: str = "Berlin is the seat.", category: str = "facts", **fields: Any) -> EntryDraft:
    """A draft that leaves nothing open: what isn't given is none, whatever it supersedes."""
    return EntryDraft(MemoryCategory(category), body, **{"summary": "", "metadata": {}, **fields})


def add(
    access: Access, body: str = "Berlin is the seat.", category: str = "facts", **fields: Any
) -> EntryWritten:
    return services.add_entry(access, draft(body, category, **fields))


def entry_text(entry_id: str, body: str = "A body.", *, category: str = "facts", more: str = "") -> str:
    """An entry as somebody would write it into a file by hand."""
    return f"---\nid: {entry_id}\ncreated: 2026-01-02\ncategory: {category}\n{more}---\n\n{body}\n"


def contents(access: Access, revision: int | None = None) -> dict[str, bytes]:
    """Every file that the access sees, with its bytes."""
    with reads.export_source(access, revision=revision) as whole:
        return {listed.path: b"".join(data) for listed, data in whole.files()}


def paths(access: Access, revision: int | None = None) -> list[str]:
    return [listed.path for listed in reads.list_files(access, revision=revision).items]


def text(access: Access, path: str, revision: int | None = None) -> str:
    return reads.read_file(access, path, revision=revision).data.decode()


def rows(access: Access, kind: MemoryKind | None = None) -> dict[str, str]:
    """What an index says: the description of each file."""
    return {row.path: row.description for row in reads.read_index(access, kind).rows}


def of_tenant(access: Access) -> AbstractContextManager[None]:
    """Inside, rows of the access's tenant are seen."""
    return tenant_transaction(access.tree.tenant_id)


def from_outside() -> AbstractContextManager[None]:
    """Inside, this thread works as the owner of the tables, who sees the rows of all; with what is committed."""
    return connected_as(OWNER)


def revisions(access: Access) -> list[int]:
    with of_tenant(access):
        return list(Revision.objects.of(access.tree).order_by("number").values_list("number", flat=True))


def revision(access: Access) -> int:
    with of_tenant(access):
        return Tree.objects.get(pk=access.tree.pk).revision


def in_days(days: float) -> datetime:
    return datetime.now(tz=UTC) + timedelta(days=days)


def days_pass(access: Access, days: float = 1) -> None:
    """Bring every expiry nearer: what else a clock changes, no test can see."""
    past = timedelta(days=days)
    with of_tenant(access):
        Block.objects.of(access.tree).update(expires_at=F("expires_at") - past)
        File.objects.of(access.tree).update(next_expiry=F("next_expiry") - past)
