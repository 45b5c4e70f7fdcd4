"""Entries inside a change: added to the file of their category, superseded, retired."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from memsvc.contract.entries import EntryRetired, EntryWritten
from memsvc.contract.files import WriteWarning
from memsvc.contract.requests import EntryDraft, SuccessorRequest
from memsvc.format import (
    NO_METADATA,
    BlankBody,
    BlockKind,
    FormatError,
    InvalidText,
    Kept,
    MemoryCategory,
    MemoryEntry,
    Metadata,
    Problem,
    append_to,
    carried_lines,
    checked_metadata,
    checked_title,
    closed_code,
    code_end,
    compose_block,
    count_lines,
    cut_file,
    entry_path,
    held_key,
    in_utc,
    new_entry_id,
    normal_entry,
    peer_readable,
    places_of_keys,
    says_something,
    summary_after,
)
from memsvc.format import Block as CutBlock
from memsvc.format import superseded as with_superseded_by
from memsvc.format.fences import ends_indented
from memsvc.tree import files, router, statements
from memsvc.tree.access import Access
from memsvc.tree.blocks import content, entry_of, rendered, row_of
from memsvc.tree.commands import Precondition
from memsvc.tree.errors import AlreadySuperseded, EntryNotFound, InvalidSupersession, PreconditionFailed
from memsvc.tree.models import Block, EntryRow, File
from memsvc.tree.scope import Change
from memsvc.tree.visibility import FOR_GOOD, has_expired, is_active, is_visible, visible


@dataclass(frozen=True, slots=True)
class Composed:
    """A draft with its id and instant, checked and rendered before the tree is locked.

    `path` is None when it follows from the entry that is superseded, and so is `block` when some of the text does.
    """

    draft: EntryDraft
    entry: MemoryEntry
    block: CutBlock | None
    path: str | None
    expires_at: datetime | None
    metadata: Metadata
    code_closed: bool


def compose(access: Access, draft: EntryDraft, after: Block | None = None) -> Composed:
    """Give a draft its id, instant, text and place; what it leaves open is taken from the entry that it comes `after`.

    Raises `FormatError` and `Forbidden`; needs no database.
    """
    if not says_something(draft.body):
        raise BlankBody
    when = in_utc(draft.when)
    entry = MemoryEntry(
        entry_id=new_entry_id(when),
        created=draft.when if draft.when and draft.when.tzinfo else when,
        category=draft.category,
        body=draft.body,
        summary=draft.summary or "",
        source=draft.source,
        confidence=draft.confidence,
        tags=tuple(draft.tags),
        supersedes=draft.supersedes,
    )
    metadata = None if draft.metadata is None else checked_metadata(draft.metadata)
    block = None
    if after is not None and metadata is None:
        metadata = after.metadata
        block = _with_lines_of(after, entry)
    if draft.supersedes and after is None and (draft.summary is None or metadata is None):
        # What else would be refused is found with the text.
        entry = normal_entry(entry)
    else:
        block = block or compose_block(entry, metadata or NO_METADATA)
    follows = draft.category is MemoryCategory.PROCEDURE and draft.supersedes is not None and not draft.title
    title = checked_title(draft.title)
    path = None if follows else entry_path(draft.category, when=when, title=title)
    if path is not None:
        access.require_write(path)
    if isinstance(draft.expires_at, Kept):
        expires_at = after.expires_at if after else None
    else:
        expires_at = in_utc(draft.expires_at) if draft.expires_at else None
        if has_expired(expires_at, datetime.now(tz=UTC)):
            raise InvalidText("expires_at lies in the past; leave it out for an entry that stays")
    return Composed(
        draft=draft,
        entry=block.entry if block and block.entry else entry,
        block=block,
        path=path,
        expires_at=expires_at,
        metadata=metadata or NO_METADATA,
        code_closed=bool(code_end(b"\n" + draft.body.encode())),
    )


def _with_lines_of(old: Block, entry: MemoryEntry) -> CutBlock | None:
    """An entry with the lines of another's metadata, just as they stand there; None where they are not to be had."""
    if old.raw is not None:
        return None
    lines, metadata = carried_lines(old.head)
    try:
        return compose_block(entry, metadata, written=lines) if lines else None
    except FormatError:
        return None


def add(change: Change, composed: Composed) -> EntryWritten:
    """Append an entry, mark the one it supersedes, and tell the index."""
    supersedes = composed.entry.supersedes
    old = visible_entry(change, supersedes) if supersedes else None
    if old is not None:
        draft = composed.draft
        if composed.block is None:
            if draft.summary is None:
                draft = replace(draft, summary=summary_after(entry_of(old), draft.body))
            composed = compose(change.access, draft, old)
        elif isinstance(draft.expires_at, Kept):
            composed = replace(composed, expires_at=old.expires_at)
    return _put(change, composed, old)


def supersede(change: Change, successor: SuccessorRequest) -> EntryWritten:
    """Put an entry in the place of another, with what the successor leaves open taken from it."""
    block = visible_entry(change, successor.entry_id)
    old, summary = entry_of(block), successor.summary
    draft = EntryDraft(
        successor.category or old.category,
        successor.body,
        summary=summary_after(old, successor.body) if summary is None else summary,
        tags=old.tags if successor.tags is None else successor.tags,
        source=successor.source,
        confidence=successor.confidence,
        title=successor.title,
        when=successor.when,
        supersedes=old.entry_id,
        expires_at=successor.expires_at,
        metadata=successor.metadata,
    )
    return _put(change, compose(change.access, draft, block), block)


def _put(change: Change, composed: Composed, superseded: Block | None) -> EntryWritten:
    if superseded is not None:
        _require_supersedable(superseded, composed.entry)
    path = composed.path
    if path is None:
        assert superseded is not None  # the path follows from it
        path = superseded.file.path
    taken, file, last = statements.end_of_file(change.tree, path, composed.entry.entry_id)
    if taken:
        return _put(change, compose(change.access, composed.draft, superseded), superseded)
    if file is not None and files.is_hidden(change, file):
        file, last = None, None
    entry = composed.entry
    created = file is None
    file = file or files.create(change, path)
    in_one_file = superseded is not None and superseded.file_id == file.pk
    rewritten = _append(change, file, last, composed, is_last=not in_one_file)
    if superseded is not None and in_one_file and rewritten:
        # What was the last entry of the file may stand in another row now.
        superseded = visible_entry(change, superseded.entry_id)
    if superseded is not None:
        # The file may be the very one that was appended to: its counts must not be taken from two copies.
        mark_superseded(change, file if in_one_file else superseded.file, superseded, by=entry.entry_id)
        if not in_one_file:
            update_from(change, superseded.file, gone=superseded)
    gone = superseded if in_one_file else None
    router.upsert_row(change, _row_update(change, file, composed), make_index=True, is_new=created, gone=gone)
    if composed.code_closed:
        _warn(change, path, closed_code(file.lines))
    # What was rewritten was looked through then.
    raw = composed.block.raw if composed.block and not rewritten else b""
    for at in places_of_keys(raw):
        # The entry is the last in its file.
        _warn(change, path, held_key(file.lines + 1 - count_lines(raw[at:].decode())))
    return EntryWritten(
        path=path,
        entry=entry,
        revision=change.number,
        superseded=entry.supersedes,
        file_created=created,
        peer_readable=peer_readable(entry),
        expires_at=composed.expires_at,
        metadata=composed.metadata,
    )


def _warn(change: Change, path: str, problem: Problem) -> None:
    change.warnings.append(WriteWarning(path, problem.line, problem.code, problem.reason))


def _row_update(change: Change, file: File, composed: Composed) -> router.RowUpdate:
    entry = composed.entry
    on = entry.created.astimezone(UTC).date()
    if composed.expires_at:
        # What will be invisible one day must not stay behind in the index: it is told what else the file says.
        return replace(router.described(change, file), on=on)
    description, origin = router.quoted(
        statements.LiveEntry(entry.created, entry.summary, entry.tags, entry.body[: statements.BEGINNING])
    )
    return router.RowUpdate(
        path=file.path, description=description, origin=origin, created=entry.created, tags=entry.tags, on=on
    )


def update_from(change: Change, file: File, *, gone: Block) -> None:
    """Let a file's row be without an entry that the file has no more, or only as a superseded one."""
    update = router.RowUpdate(path=file.path)
    if file.next_expiry:
        update = replace(router.described(change, file), on=None)
    router.upsert_row(change, update, gone=gone)


def visible_entry(change: Change, entry_id: str) -> Block:
    """The first live entry with an id that the access sees, with its file. Raises `EntryNotFound`."""
    block = statements.entry_with_id(change.tree, entry_id)
    if block is not None and _sees(change, block):
        return block
    named = Block.objects.of(change.tree).live_at(None).entries().filter(entry_id=entry_id)
    for duplicate in named.select_related("file").order_by("file__path", "position"):
        if _sees(change, duplicate):
            return duplicate
    raise EntryNotFound(entry_id)


def _sees(change: Change, block: Block) -> bool:
    return bool(files.visible_at(change, [block])) and change.access.sees(block.file.path)


def _require_supersedable(target: Block, entry: MemoryEntry) -> None:
    """Compare-and-swap, since the tree is locked."""
    if not is_active(target):
        raise AlreadySuperseded(target.entry_id, target.superseded_by)
    if target.category != entry.category:
        raise InvalidSupersession(
            f"'{target.entry_id}' is in category '{target.category}' and can't be superseded by one in "
            f"'{entry.category}'; write the new entry in the same category, or without `supersedes`"
        )


def _append(change: Change, file: File, last: Block | None, composed: Composed, *, is_last: bool) -> bool:
    """Add an entry to the end of a file, whose row is kept here when that `is_last` of what happens to it.

    Returns whether the block above it had to be written anew.
    """
    start = last.position if last else 0
    if last is not None and not files.visible_at(change, [last]):
        last = files.live_blocks(file).filter(visible(change.at)).last()
    before, block = rendered(last) if last else b"", composed.block
    assert block is not None  # what hung on the superseded entry has been composed since
    # Free text is one text: an earlier piece of it may open a code block.
    is_piece = last is not None and last.kind == BlockKind.TEXT and file.size != len(before)
    if is_piece or code_end(before) or (before and not before.endswith(b"\n")):
        _append_to_text(change, file, composed, block)
        return True
    blocks = _addition(file, last, block)
    rows = [
        row_of(each, file, position=start + files.GAP * n, revision=change.number)
        for n, each in enumerate(blocks, start=1)
    ]
    rows[-1].expires_at = composed.expires_at
    files.append_blocks(change, file, rows, is_last=is_last)
    return False


def _addition(file: File, last: Block | None, block: CutBlock) -> list[CutBlock]:
    """What to put below a file's last block, for it to be an entry also when that one has disappeared."""
    text = block.raw.decode()
    addition = append_to(rendered(last) if last else b"", text, newline=file.newline)
    if last is not None and not is_visible(last, FOR_GOOD):
        lasting = files.live_blocks(file).filter(visible(FOR_GOOD)).last()
        later = append_to(rendered(lasting) if lasting else b"", text, newline=file.newline)
        addition = max(addition, later, key=len)
        if not addition.startswith((b"\n", b"\r\n")):
            addition = file.newline.encode() + addition
    gap = addition.removesuffix(block.raw)
    # Below blank lines it is what it was composed as, and need not be read again.
    if len(gap) < len(addition) and not gap.strip(b"\r\n"):
        return [replace(block, raw=addition, meta_end=block.meta_end + len(gap))]
    return cut_file(file.path, addition)


def _append_to_text(change: Change, file: File, composed: Composed, block: CutBlock) -> None:
    """The slow way, where what is above lacks a line end or leaves a code block open: the block before changes too."""
    every = list(files.live_blocks(file))
    data, text = content(files.visible_at(change, every)), block.raw.decode()
    if closing := code_end(data, newline=file.newline):
        _warn(change, file.path, closed_code(count_lines((data + closing).decode(errors="replace"))))
    at, entry_id = composed.expires_at, composed.entry.entry_id
    expiries = {(entry_id, ""): at} if at else files.NO_EXPIRIES
    data += append_to(data, text, newline=file.newline)
    files.fill(change, file, data, expiries=expiries, every=every)


def mark_superseded(change: Change, file: File, target: Block, *, by: str) -> None:
    """Retire an entry without rewriting its text: the line is added when the file is rendered."""
    before = rendered(target)
    after = with_superseded_by(before, by)
    # If an indented `---` ended its frontmatter when it was stored, that goes on below by today's rule: a line above
    # that `---` would stand in the middle of a value.
    kinds = [block.kind for block in cut_file(file.path, after)] if ends_indented(target.head) else []
    if after.count(b"\n") > before.count(b"\n") and kinds != [BlockKind.ENTRY]:
        files.mark_superseded(change, file, target, by=by, spliced=len(after) - len(before))
        return
    # Its text is stored anew where an empty `superseded_by:` was filled in, or its rows end elsewhere now.
    (block,) = cut_file(file.path, after)
    row = row_of(block, file, position=target.position, revision=change.number)
    row.expires_at = target.expires_at
    files.keep_authors([target], [row])
    files.close_blocks(change, file, [target])
    files.insert_blocks(change, file, [row])
    file.sha256 = ""
    files.count(change, file)
    files.save(change, file)


def retire(change: Change, entry_id: str, precondition: Precondition | None) -> EntryRetired:
    """Take an entry out of its file; a file that held nothing else goes with it."""
    block = visible_entry(change, entry_id)
    wanted = precondition.if_match if precondition else None
    if wanted not in (None, "*", entry_etag(block)):
        raise PreconditionFailed(
            f"memory entry '{entry_id}'", revision=change.current, etag=entry_etag(block)
        )
    take_out(change, block)
    return EntryRetired(entry_id=entry_id, path=block.file.path, revision=change.number)


def take_out(change: Change, block: Block) -> None:
    """Close an entry of a file, hidden or not; a file of which nothing else shows goes with it."""
    file = block.file
    files.close_blocks(change, file, [block])
    _close_gap(change, file, block)
    if files.count(change, file):
        file.sha256 = ""
        file.is_text = file.is_text or files.decodes(
            content(files.live_blocks(file).filter(visible(change.at)))
        )
        files.save(change, file)
        update_from(change, file, gone=block)
    else:
        files.close_files(change, [file])
        router.forget(change, [file.path])


def _close_gap(change: Change, file: File, gone: Block) -> None:
    """Let what stood below a block be read below the one above it as it was, with a line between them if need be."""
    shown = files.live_blocks(file).filter(visible(change.at))
    above = shown.filter(position__lt=gone.position).last()
    below = shown.filter(position__gt=gone.position).first()
    if above is None or below is None:
        return
    data = rendered(below)
    *_, joined = cut_file(file.path, rendered(above) + data)
    if joined.raw.strip() == data.strip():
        return
    gap = append_to(rendered(above), "", newline=file.newline)
    *marks, block = cut_file(file.path, gap + data.lstrip(b"\r\n"))
    # A mark that keeps the two apart may be a text of its own, which has the place that came free.
    rows = [
        row_of(each, file, position=position, revision=change.number)
        for each, position in zip(
            [*marks, block], [gone.position] * len(marks) + [below.position], strict=True
        )
    ]
    rows[-1].expires_at = below.expires_at
    files.keep_authors([below], rows)
    files.close_blocks(change, file, [below])
    files.insert_blocks(change, file, rows)


def entry_etag(block: Block | EntryRow, revision: int | None = None) -> str:
    """Changes with the entry's text and when it is superseded."""
    superseded_in = block.superseded_in or 0
    if revision is not None and superseded_in > revision:
        superseded_in = 0
    return f"r{max(block.added_in, superseded_in)}-{block.entry_id}"
