from dataclasses import dataclass

import pytest
from django.db.models import Model
from django.test import Client

from memsvc.contract.requests import EntryDraft
from memsvc.format import MemoryCategory
from memsvc.tree import services
from memsvc.tree.access import Access
from memsvc.tree.models import Block, File, Revision, Tree
from memsvc.tree.trees import tree_of
from tenants.models import ApiKey, Membership, Role, Tenant, User
from tenants.services import set_member
from tests.people import make_key, make_tenant
from tests.tree.support import from_outside


@dataclass(frozen=True, slots=True)
class House:
    """A tenant with one of everything that the admin shows."""

    tenant: Tenant
    tree: Tree
    file: File
    entry: Block
    revision: Revision
    key: ApiKey
    key_text: str
    membership: Membership

    @property
    def objects(self) -> dict[str, Model]:
        """By the name of their pages."""
        return {
            "tenants_tenant": self.tenant,
            "tenants_membership": self.membership,
            "tenants_apikey": self.key,
            "tree_tree": self.tree,
            "tree_file": self.file,
            "curation_entry": self.entry,
            "tree_revision": self.revision,
        }


def make_house(name: str, canary: str) -> House:
    tenant = make_tenant(name)
    tree = tree_of(tenant)
    key, text = make_key(tenant, name=f"key of {canary}")
    access = Access(tree=tree, actor=key.actor)
    services.write_file(access, f"/{canary}.md", f"<script>alert('{canary}')</script>\n", message=canary)
    draft = EntryDraft(
        category=MemoryCategory.FACTS, body=f"body of {canary}", summary=f"summary of {canary}"
    )
    written = services.add_entry(access, draft)
    with from_outside():
        file = File.objects.get(tenant=tenant, path=f"/{canary}.md")
        entry = Block.objects.get(tenant=tenant, entry_id=written.entry.entry_id)
        revision = Revision.objects.get(tenant=tenant, number=1)
    return House(
        tenant=tenant,
        tree=tree,
        file=file,
        entry=entry,
        revision=revision,
        key=key,
        key_text=text,
        membership=set_member(
            tenant=tenant, user=User.objects.create_user(f"person of {canary}"), role=Role.VIEWER
        ),
    )


@pytest.fixture
def alice(transactional_db: None) -> House:
    return make_house("alice", "wonderland")


@pytest.fixture
def bob(transactional_db: None) -> House:
    return make_house("bob", "builder")


def login(name: str, *memberships: tuple[Tenant, Role], superuser: bool = False) -> Client:
    """A browser in which a person of the staff has logged in."""
    user = User.objects.create_user(name, is_staff=True, is_superuser=superuser)
    for tenant, role in memberships:
        set_member(tenant=tenant, user=user, role=role)
    client = Client(raise_request_exception=False)
    client.force_login(user)
    return client


@pytest.fixture
def root(transactional_db: None) -> Client:
    return login("root", superuser=True)


@pytest.fixture
def owner(alice: House) -> Client:
    return login("owner", (alice.tenant, Role.OWNER))


@pytest.fixture
def moderator(alice: House) -> Client:
    return login("moderator", (alice.tenant, Role.MODERATOR))


@pytest.fixture
def nobody(transactional_db: None) -> Client:
    """Of the staff, but no member of anything."""
    return login("nobody")
