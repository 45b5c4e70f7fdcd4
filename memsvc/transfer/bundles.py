"""A tree's whole history as a git bundle, which plain git clones: one commit for each revision."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from tempfile import TemporaryFile
from typing import BinaryIO, Final, Self

from memsvc.contract.history import RevisionRead
from memsvc.transfer.git import Folder, ObjectId, Pack, Signature
from memsvc.transfer.names import git_name
from memsvc.tree.access import Access
from memsvc.tree.errors import FileNotFound, TooLarge
from memsvc.tree.reads import Step, changelog

BRANCH: Final = "main"
# A file of 5 MB that grew by 10,000 revisions would be 25 GB of versions: nobody wants to wait for that.
MAX_CONTENT_BYTES: Final = 4 * 1024**3

type Progress = Callable[[str], None]


class BundleExport:
    """The bytes of a bundle in pieces. Iterate it once; close it when it isn't read to the end."""

    def __init__(self, spool: BinaryIO, pieces: Iterator[bytes]) -> None:
        self._spool = spool
        self._pieces = pieces

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> bytes:
        try:
            return next(self._pieces)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        with suppress(OSError):
            self._spool.close()


def export_bundle(
    access: Access, revision: int | None = None, *, progress: Progress = lambda path: None
) -> BundleExport:
    """Write the history of what `access` sees up to a revision, as commits on `main`.

    A commit has the revision's actor, time and message (its action where there is none). An access that sees a
    folder only gets the commits that changed something in it. The objects are spooled to a temporary file before
    the first byte. Raises `RevisionNotFound`, `FileNotFound` when there is no history yet and so nothing that git
    could clone, and `TooLarge` when the versions of all files together hold more than 4 GiB.
    """
    spool: BinaryIO = TemporaryFile()  # noqa: SIM115  closed by the export
    try:
        pack = Pack(spool)
        with changelog(access, revision=revision) as steps:
            head = _committed(pack, steps, every=access.prefix == "/", progress=progress)
        if head is None:
            raise FileNotFound(access.prefix)
        return BundleExport(spool, pack.bundle(BRANCH, head))
    except BaseException:
        spool.close()
        raise


def _committed(pack: Pack, steps: Iterator[Step], *, every: bool, progress: Progress) -> ObjectId | None:
    root, size = Folder(), 0
    head: ObjectId | None = None
    tree: ObjectId | None = None
    for step in steps:
        size += sum(len(data) for _, data in step.written)
        if size > MAX_CONTENT_BYTES:
            raise TooLarge(
                "The versions of all files hold more than 4 GiB; export them as of a revision instead."
            )
        for path in step.gone:
            root.remove(git_name(path).encode())
        for path, data in step.written:
            root.put(git_name(path).encode(), pack.blob(data))
        before, tree = tree, root.written(pack)
        if every or (tree != before and (head or root.files or root.folders)):
            head = pack.commit(tree, head, _author(step.revision), _message(step.revision))
        progress(f"revision {step.revision.number}")
    return head


def _author(revision: RevisionRead) -> Signature:
    address = f"{revision.actor_kind}-{revision.actor_id}@memsvc"
    return Signature(revision.actor_name, address, revision.at)


def _message(revision: RevisionRead) -> str:
    subject = revision.message.strip() or revision.action
    return f"{subject}\n\nRevision: {revision.number}\nAction: {revision.action}\n"
