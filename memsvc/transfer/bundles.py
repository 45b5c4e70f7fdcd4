"""A tree's whole history as a git bundle, which plain git clones: one commit for each revision."""

from collections.abc import Iterator
from contextlib import ExitStack
from tempfile import TemporaryFile
from typing import Final

from memsvc.transfer.exports import Export
from memsvc.transfer.git import Folder, ObjectId, Pack, Signature
from memsvc.transfer.names import git_name
from memsvc.transfer.reports import Progress
from memsvc.tree.access import Access
from memsvc.tree.errors import FileNotFound, TooLarge
from memsvc.tree.reads import Step, changelog

BRANCH: Final = "main"
# A file of 5 MB that grew by 10,000 revisions would be 25 GB of versions: nobody wants to wait for that.
MAX_CONTENT_BYTES: Final = 4 * 1024**3


def export_bundle(
    access: Access, revision: int | None = None, *, progress: Progress = lambda path: None
) -> Export:
    """Write the history of what `access` sees up to a revision, as commits on `main`.

    A commit has the revision's actor, time and message (its action where there is none). An access that sees a
    folder only gets the commits that changed something in it. The objects are spooled to a temporary file before
    the first byte. Raises `RevisionNotFound`, `FileNotFound` when there is no history yet and so nothing that git
    could clone, and `TooLarge` when the versions of all files together hold more than 4 GiB.
    """
    with ExitStack() as held:
        pack = Pack(held.enter_context(TemporaryFile()))
        with changelog(access, revision=revision) as steps:
            head = _committed(pack, steps, every=access.prefix == "/", progress=progress)
        if head is None:
            raise FileNotFound(access.prefix)
        return Export(held.pop_all(), pack.bundle(BRANCH, head))


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
            made = step.revision
            author = Signature(made.actor_name, f"{made.actor_kind}-{made.actor_id}@memsvc", made.at)
            subject = made.message.strip() or made.action
            message = f"{subject}\n\nRevision: {made.number}\nAction: {made.action}\n"
            head = pack.commit(tree, head, author, message)
        progress(f"revision {step.revision.number}")
    return head
