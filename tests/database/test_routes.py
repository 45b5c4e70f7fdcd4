"""Every statement could go to the one server that has its tenant's rows: see `tests.database.routes`."""

from collections.abc import Callable
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connection, transaction
from django.utils import timezone

from memsvc import jobs
from memsvc.contract.erasures import ErasureKind, ErasureRequest
from memsvc.recall import ann_index, vectors
from memsvc.recall.accesses import ACCESS_COUNTS
from memsvc.recall.search import Mode, Query, search
from memsvc.tree import reads, services, trees
from memsvc.tree.access import Access
from memsvc.tree.erasure import erase
from memsvc.tree.history.redaction import redact_version
from memsvc.tree.models import Block, File
from memsvc.tree.operations import AddEntry
from memsvc.tree.reads import EntryFilter
from memsvc.tree.trees import tree_of
from tenants import idempotency
from tenants.authentication import key_with_text
from tenants.last_use import LAST_USES
from tenants.models import StoredAnswer
from tenants.scopes import Scope
from tests.api.conftest import client_with
from tests.api.support import streamed
from tests.api.test_matrix import EVERY_METHOD, ROUTES, call, names_of
from tests.database.routes import judged, watched
from tests.database.test_second_wall import ACTS, filled
from tests.people import make_key, make_tenant
from tests.tree.support import FACTS, add, draft, from_outside, in_days, of_tenant

pytestmark = pytest.mark.django_db(transaction=True)

BY_PATH = EntryFilter(tags=("a",), path_prefix="/memory")


@pytest.fixture(autouse=True)
def distributed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "DISTRIBUTED", True)


@pytest.fixture
def bob() -> Access:
    return filled("bob", "builder")


# What the acts of the second wall leave out: ways to the database that only some arguments take.
MORE: dict[str, Callable[[Access], object]] = {
    **ACTS,
    "first use of a tree": lambda bob: tree_of(make_tenant("carol")),
    "key": lambda bob: key_with_text(make_key(bob.tree.tenant, Scope.READ)[1]),
    "add to an old file": lambda bob: add(bob, "More.", tags=("a",)),
    "add a procedure": lambda bob: add(bob, "Step by step.", "procedure", title="Deploy"),
    "add for a while": lambda bob: add(bob, "Soon gone.", expires_at=in_days(1)),
    "batch": lambda bob: services.batch(bob, [AddEntry(draft(f"Fact {n}.")) for n in range(50)]),
    "import": lambda bob: services.import_files(bob, [(FACTS, b"other\n"), ("/a/b.md", b"text\n")]),
    "search by path": lambda bob: search(bob, Query(text="word", mode=Mode.LEXICAL, wanted=BY_PATH)),
    "search of the past": lambda bob: search(bob, Query(text="word", mode=Mode.LEXICAL), revision=2),
    "search by meaning": lambda bob: (vectors.embed_tree(bob.tree), search(bob, Query(text="word"))),
    "contents of the past": lambda bob: reads.list_files(bob, revision=1),
    "describe": lambda bob: trees.describe_tree(bob, "new", language="german"),
    "archive": lambda bob: trees.archive_tree(bob),
    "measure a part": lambda bob: trees.measure(Access(bob.tree, bob.actor, prefix="/memory")),
    "delete the tree": lambda bob: trees.delete_tree(bob),
    "redact": lambda bob: redacted(bob),
    "erase a path": lambda bob: erased(bob, ErasureKind.PATH, "/secret.md"),
    "erase an entry": lambda bob: erased(bob, ErasureKind.ENTRY, "mem_same"),
    "erase the tree": lambda bob: erased(bob, ErasureKind.TREE, bob.tree.name),
}


def erased(bob: Access, kind: ErasureKind, value: str) -> None:
    services.move(bob, "/secret.md", "/a.md")
    services.move(bob, "/a.md", "/secret.md")
    for dry_run in (True, False):
        erase(
            bob,
            ErasureRequest(tree=bob.tree.name, kind=kind, value=value, dry_run=dry_run, erase_paths=True),
        )


def redacted(bob: Access) -> None:
    services.write_file(bob, "/secret.md", "something else\n")
    with of_tenant(bob):
        file = File.objects.of(bob.tree).get(path="/secret.md")
    redact_version(bob, file.pk, file.added_in)


@pytest.mark.parametrize("act", MORE)
def test_services_and_reads_name_their_tenant(bob: Access, act: str) -> None:
    with watched() as watch:
        MORE[act](bob)

    assert watch.found == {}
    assert watch.judged


@pytest.mark.parametrize("route", ROUTES)
def test_every_endpoint_names_its_tenant(bob: Access, route: str) -> None:
    names = names_of(bob.tree.tenant, "mem_same", number=2)
    client = client_with(make_key(bob.tree.tenant, *Scope)[1])
    with watched() as watch:
        for method in EVERY_METHOD:
            answer = call(client, route, method, names)
            assert answer.status_code < 500, method
            if answer.streaming:
                streamed(answer)

    assert watch.found == {}
    assert watch.judged


def test_a_write_with_a_key_of_its_own_names_its_tenant(bob: Access) -> None:
    client = client_with(make_key(bob.tree.tenant, *Scope)[1])
    with watched() as watch:
        for _ in range(2):
            answer = client.post(
                "/v1/trees/default/entries",
                {"category": "facts", "body": "x"},
                format="json",
                headers={"Idempotency-Key": "k"},
            )
            assert answer.status_code == 201

    assert watch.found == {}


def test_jobs_and_commands_name_their_tenants(
    bob: Access, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ann_index, "LARGE", 1)
    tenant = bob.tree.tenant
    with from_outside():
        StoredAnswer(tenant=tenant, key="k", fingerprint="f").save(force_insert=True)
        StoredAnswer.objects.update(created_at=timezone.now() - timedelta(days=30))
    key = key_with_text(make_key(tenant, Scope.READ)[1])
    assert key is not None
    add(bob, "Soon gone.", expires_at=in_days(1))
    with watched() as watch:
        while vectors.embed_tree(bob.tree):
            pass
        search(bob, Query(text="word"))
        with of_tenant(bob):
            Block.objects.of(bob.tree).filter(expires_at__isnull=False).update(expires_at=timezone.now())
        vectors.forget_expired()
        jobs.defer_stale_trees()
        idempotency.purge()
        LAST_USES.note_use(key, "127.0.0.1")
        LAST_USES.flush()
        ACCESS_COUNTS.flush()
        for command in (
            ("memory_export", tenant.slug, str(tmp_path / "out.zip")),
            ("memory_import", tenant.slug, str(tmp_path / "out.zip")),
            ("memory_check", tenant.slug),
            ("tenant_history", tenant.slug, "--days", "1"),
            ("history_prune", tenant.slug),
            ("key_create", tenant.slug, "--name", "x", "--scope", "read"),
        ):
            call_command(*command, stdout=StringIO(), stderr=StringIO())

    assert watch.found == {}
    sent = "\n".join(watch.judged)
    for said in ("INSERT INTO recall_vector", "SET indexed", "hnsw.ef_search", "DELETE FROM recall_vector"):
        assert said in sent


ONE, TWO = "'00000000-0000-7000-8000-000000000001'::uuid", "'00000000-0000-7000-8000-000000000002'::uuid"
OBSTACLES = {
    "no tenant": ("SELECT * FROM tree_tree WHERE name = 'a'", "without a constant"),
    "saved by its id": (f"UPDATE tree_tree SET name = 'a' WHERE id = {ONE}", "without a constant"),
    "deleted by its id": (f"DELETE FROM recall_vector WHERE block_id = {ONE}", "without a constant"),
    "a join by the id": (
        f"SELECT * FROM tree_block b LEFT JOIN tree_file f ON f.id = b.file_id WHERE b.tenant_id = {ONE}",
        "tree_file is scanned without",
    ),
    "a lateral join": (
        "SELECT * FROM tree_file f LEFT JOIN LATERAL ("
        "  SELECT * FROM tree_block b WHERE b.tenant_id = f.tenant_id AND b.file_id = f.id ORDER BY position LIMIT 1"
        f") b ON true WHERE f.tenant_id = {ONE}",
        "tree_block is scanned without",
    ),
    "a question about each row": (
        "SELECT EXISTS (SELECT FROM tree_file f WHERE f.tenant_id = t.tenant_id AND f.tree_id = t.id)"
        f" FROM tree_tree t WHERE t.tenant_id = {ONE}",
        "tree_file is scanned without",
    ),
    "several tenants": (f"SELECT * FROM tree_tree WHERE tenant_id IN ({ONE}, {TWO})", "without a constant"),
    "an insertion below a WITH": (
        f"WITH u AS (UPDATE tree_tree SET name = 'a' WHERE tenant_id = {ONE} RETURNING id)"
        " INSERT INTO tree_revision SELECT r.* FROM tree_revision r"
        f" WHERE r.tenant_id = {ONE} AND r.tree_id IN (SELECT id FROM u)",
        "insertion inside or below",
    ),
    "an insertion inside a WITH": (
        "WITH i AS (INSERT INTO tree_revision SELECT * FROM tree_revision"
        f" WHERE tenant_id = {ONE} RETURNING 1) SELECT count(*) FROM i",
        "insertion inside or below",
    ),
    "a deletion by a deletion": (
        f"WITH m AS (DELETE FROM recall_embeddedtree WHERE tenant_id = {ONE} RETURNING tree_id)"
        f" DELETE FROM recall_vector v USING m WHERE v.tenant_id = {ONE} AND v.tree_id = m.tree_id",
        "a deletion of what another",
    ),
    "another table beside": (
        f"SELECT 1 FROM tree_tree WHERE tenant_id = {ONE} AND EXISTS (SELECT FROM pg_index WHERE indisvalid)",
        "pg_index beside tree_tree",
    ),
    "the tenant's own row beside": (
        f"SELECT * FROM tree_tree t JOIN tenants_tenant o ON o.id = t.tenant_id WHERE t.tenant_id = {ONE}",
        "tenants_tenant beside tree_tree",
    ),
    "entered by a function": (
        "SELECT set_config('memsvc.tenant_id', 'x', true)",
        "otherwise than by SET LOCAL",
    ),
    "entered for longer": ("SET memsvc.tenant_id = 'x'", "otherwise than by SET LOCAL"),
    "entered beside others": (
        f"SET LOCAL memsvc.tenant_id = '00000000'; SELECT * FROM tree_tree WHERE tenant_id = {ONE}",
        "several statements",
    ),
    "set by a function": ("SELECT set_config('hnsw.ef_search', '1', true)", "set_config"),
    "a temporary table": ("CREATE TEMPORARY TABLE mine (id int)", "temporary table"),
}


@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_an_obstacle_is_found(bob: Access, obstacle: str) -> None:
    statement, said = OBSTACLES[obstacle]
    with of_tenant(bob):
        faults = judged(statement)

    assert any(said in fault for fault in faults), faults


@pytest.mark.parametrize(
    "statement",
    [
        f"SELECT * FROM tree_tree WHERE tenant_id = {ONE} AND name = 'a'",
        f"SELECT * FROM tree_block b JOIN tree_file f ON f.tenant_id = b.tenant_id WHERE b.tenant_id = {ONE}",
        f"WITH u AS (UPDATE tree_tree SET name = 'a' WHERE tenant_id = {ONE}) UPDATE tree_file SET path = 'a'"
        f" WHERE tenant_id = {ONE}",
        "SET LOCAL memsvc.tenant_id = '00000000-0000-7000-8000-000000000001'",
        "SELECT * FROM tenants_tenant",
    ],
)
def test_what_is_no_obstacle_passes(bob: Access, statement: str) -> None:
    with of_tenant(bob):
        assert judged(statement) == []


def test_what_is_saved_and_read_again_is_found_by_its_tenant(bob: Access) -> None:
    """By Django's own ways, which know of `id` only."""
    with watched() as watch, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL memsvc.tenant_id = '{bob.tree.tenant_id}'")
        file = File.objects.of(bob.tree).filter(path=FACTS).get()
        file.save(update_fields=["size"])
        file.refresh_from_db()
        assert file.tree.pk == bob.tree.pk
        assert Block.objects.of(bob.tree).select_related("file", "tree").filter(file__path=FACTS).first()
        assert Block.objects.of(bob.tree).filter(file__path=FACTS).defer("text").first()

    assert watch.found == {}
    assert len(watch.judged) == 7
