"""What an import may be made of, and the one function that takes any of it from a file."""

from enum import StrEnum
from pathlib import Path
from typing import Final

from memsvc.contract.imports import ImportReport
from memsvc.transfer.archives import Limits
from memsvc.transfer.external import import_jsonl
from memsvc.transfer.imports import import_notebooks, import_zip
from memsvc.transfer.mneme import import_mneme
from memsvc.transfer.refusals import ImportRefused
from memsvc.transfer.reports import Progress
from memsvc.tree.access import Access
from memsvc.tree.commands import OnConflict


class ImportFormat(StrEnum):
    """`zip` is a tree or a memory folder (also deep-memory-agent's), `pydantic-deep` a zip of its notebooks."""

    ZIP = "zip"
    JSONL = "jsonl"
    PYDANTIC_DEEP = "pydantic-deep"
    MNEME = "mneme"


MEDIA_TYPES: Final = {
    "application/zip": ImportFormat.ZIP,
    "application/jsonl": ImportFormat.JSONL,
    "application/x-ndjson": ImportFormat.JSONL,
    "application/vnd.sqlite3": ImportFormat.MNEME,
}
SUFFIXES: Final = {
    ".zip": ImportFormat.ZIP,
    ".jsonl": ImportFormat.JSONL,
    ".ndjson": ImportFormat.JSONL,
    ".db": ImportFormat.MNEME,
    ".sqlite": ImportFormat.MNEME,
    ".sqlite3": ImportFormat.MNEME,
}
_HAVE_OWNERS: Final = (ImportFormat.JSONL, ImportFormat.MNEME)


def import_file(
    access: Access,
    file: Path,
    form: ImportFormat,
    *,
    on_conflict: OnConflict = OnConflict.KEEP,
    dry_run: bool = False,
    message: str = "",
    only: str | None = None,
    limits: Limits = Limits(),  # noqa: B008  frozen
    progress: Progress = lambda path: None,
) -> ImportReport:
    """Import a file of a format; `on_conflict` says what counts where the tree has, or had, something else.

    `only` names the tree (JSON Lines) or agent (Mneme) to take, where it holds several.

    Raises FormatError and TreeError, and stores nothing then.
    """
    if only is not None and form not in _HAVE_OWNERS:
        raise ImportRefused(
            [("the file", f"is not of one tree or agent among several: {form} takes no name")]
        )
    if form is ImportFormat.MNEME:
        return import_mneme(
            access,
            file,
            on_conflict=on_conflict,
            dry_run=dry_run,
            message=message,
            only=only,
            limits=limits,
        )
    with file.open("rb") as source:
        if form is ImportFormat.JSONL:
            return import_jsonl(
                access,
                source,
                on_conflict=on_conflict,
                dry_run=dry_run,
                message=message,
                only=only,
                limits=limits,
                progress=progress,
            )
        act = import_zip if form is ImportFormat.ZIP else import_notebooks
        return act(
            access,
            source,
            on_conflict=on_conflict,
            dry_run=dry_run,
            message=message,
            limits=limits,
            progress=progress,
        )
