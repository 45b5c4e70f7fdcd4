"""Do the rows of the router indexes say what their files say?"""

from collections.abc import Iterator
from dataclasses import dataclass

from memsvc.format import MAX_ROW_TAGS, BlockKind, IndexRow, parse_row, router_of
from memsvc.format.text import folded
from memsvc.tree import router, statements
from memsvc.tree.access import Access
from memsvc.tree.files import live_blocks
from memsvc.tree.models import Block, BlockQuerySet, File, Tree
from memsvc.tree.router import Origin, RowUpdate
from memsvc.tree.scope import read_transaction
from memsvc.tree.visibility import FOR_GOOD, active, visible


@dataclass(frozen=True, slots=True)
class Misstatement:
    """A row that does not say what the live entries of its file say, and why."""

    index: str
    path: str
    row: str
    reason: str


def misstatements(access: Access) -> list[Misstatement]:
    """Rows of files that are there whose description or tags nobody wrote by hand and no live entry bears out."""
    with read_transaction(access):
        indexes = File.objects.of(access.tree).live_at(None).filter(path__in=router.INDEXES)
        return [found for index in indexes for found in _in_index(access.tree, index)]


def _in_index(tree: Tree, index: File) -> Iterator[Misstatement]:
    below = {file.path: file for file in File.objects.of(tree).live_at(None).under(index.parent)}
    rows = live_blocks(index).visible().filter(kind=BlockKind.ROW)
    # Of several rows about a file the last one counts.
    for block in {row.row_path: row for row in rows}.values():
        file, row = below.get(f"{index.parent}/{block.row_path}"), parse_row(block.text)
        if file is None or row is None or router_of(file.path) != (index.path, row.path):
            continue
        for reason in _wrong_in(tree, file, block, row):
            yield Misstatement(index.path, file.path, row.path, reason)


def _wrong_in(tree: Tree, file: File, block: Block, row: IndexRow) -> Iterator[str]:
    mark, update = router.mark_of(tree, file.path, block, row), router.row_of_file(file)
    says_so = mark.origin is Origin.HAND or row.description == update.description
    # What a new tree says of a file holds until a summary says more.
    if update.origin is not Origin.SUMMARY and row.description == router.usual_description(file.path):
        says_so = True
    if not says_so and not _is_said_further_up(file, row.description, update):
        yield f"says {row.description!r} where its file says {update.description!r}"
    # A row that a person wrote may well leave tags out.
    is_quoting = mark.origin in (Origin.SUMMARY, Origin.LINE)
    missing = [tag for tag in update.tags if tag not in row.tags and is_quoting]
    if missing and len(row.tags) < MAX_ROW_TAGS:
        yield f"lacks the tags {missing!r}"
    unknown = mark.tags.difference(update.tags)
    borne_out = {
        tag for (tags,) in _live(file).values_list("tags").filter(tags__overlap=[*unknown]) for tag in tags
    }
    if unknown - borne_out:
        yield f"has the tags {sorted(unknown - borne_out)!r}, which no live entry has"


def _is_said_further_up(file: File, description: str, update: RowUpdate) -> bool:
    """Whether an entry says so that is newer, and stands above those that a row is made from."""
    return any(
        router.quoted(entry)[0] == description
        and update.created is not None
        and entry.created >= update.created
        for entry in statements.ever_said(file, folded(description[:100]), live=True)
    )


def _live(file: File) -> BlockQuerySet:
    return live_blocks(file).entries().filter(visible(FOR_GOOD), active(None))
