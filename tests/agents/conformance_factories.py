"""Backends for the conformance suite, which is run as a process of its own (see test_conformance.py)."""

from deepagents.backends.protocol import DeleteResult

from memsvc.testing import fresh_tree, set_up

set_up()

from memsvc.agents.backend import PostgresBackend  # noqa: E402  needs Django's settings


class EmptyingBackend(PostgresBackend):
    """Empties its root where `PostgresBackend` refuses to.

    The suite accepts a refusal in the case about it, but its random search compares with a file system, which
    empties; with this one everything else can be compared.
    """

    def delete(self, file_path: str) -> DeleteResult:
        refused = super().delete(file_path)
        children = self.ls("/").entries or []
        if file_path != "/" or not children:
            return refused
        for child in children:
            super().delete(child["path"])
        return DeleteResult(path="/")


def emptying_backend(name: str | None = None) -> EmptyingBackend:
    return EmptyingBackend(fresh_tree(name))
