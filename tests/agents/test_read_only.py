import pytest
from deepagents.backends import CompositeBackend, StateBackend

from memsvc.agents import PostgresBackend
from memsvc.agents.read_only import with_read_only_memory
from memsvc.testing import fresh_tree

pytestmark = pytest.mark.django_db(transaction=True)


def test_memory_is_read_only_under_every_name_that_it_is_mounted_by() -> None:
    tree = fresh_tree()
    routes = {
        "/memory/": PostgresBackend(tree),
        "/notes/": PostgresBackend(tree),
        "/tree/": PostgresBackend(tree, root="/"),
        "/agents/": PostgresBackend(tree, root="/agents/"),
    }
    guarded = with_read_only_memory(CompositeBackend(default=StateBackend(), routes=dict(routes)))

    refused = {prefix: guarded.write(f"{prefix}memory/a.md", "text").error for prefix in routes}

    assert {prefix for prefix, error in refused.items() if error is None} == {"/agents/"}
    assert all("permission denied" in error for error in refused.values() if error)
