"""Who acts on which tree, and how far: the first argument of every read and every service."""

from dataclasses import dataclass, replace
from typing import Self

from memsvc.tree.errors import Forbidden, ReadOnly
from memsvc.tree.models import Tree
from tenants.actors import Actor


@dataclass(frozen=True, slots=True)
class Access:
    """One caller's view of one tree.

    `prefix` is a canonical folder: nothing outside is seen (it reads as missing) or may be changed. An access
    that is not `writable` refuses every change, whatever a graph's permission rules say.
    """

    tree: Tree
    actor: Actor
    prefix: str = "/"
    writable: bool = True

    def read_only(self) -> Self:
        return replace(self, writable=False)

    def sees(self, path: str) -> bool:
        """Whether `path` (a file or folder) lies in this view; by whole segments."""
        return self.prefix in ("/", path) or path.startswith(self.prefix + "/")

    def require_write(self, path: str | None = None) -> None:
        """Refuse unless this access may change `path` (or anything at all)."""
        if not self.writable:
            raise ReadOnly
        if path is not None and not self.sees(path):
            raise Forbidden(path, self.prefix)
