"""Taking something out of a tree for good: as it stands, in every revision, and in whatever was made of it.

What is live goes by an ordinary change, so that the index agrees and the revision is known; then the rows of the past
lose it, in the same transaction. What stays is a certificate. Other trees, exports and backups are not touched.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import batched
from typing import Any, Final
from uuid import UUID

from django.db import connection
from django.db.models import Q
from django.utils import timezone

from memsvc.contract.erasures import (
    MAX_VALUE_BYTES,
    Erased,
    ErasedPlace,
    ErasureCertificate,
    ErasureKind,
    ErasurePlace,
    ErasureRequest,
)
from memsvc.contract.files import Page
from memsvc.database.rows import execute
from memsvc.database.tenancy import tenant_transaction
from memsvc.format import BlockKind, InvalidText, canonical_folder, checked_text
from memsvc.tree import entries, files, router, services, statements
from memsvc.tree.access import Access
from memsvc.tree.blocks import rendered
from memsvc.tree.cursors import newest_by_id
from memsvc.tree.errors import EntryNotFound, FileNotFound, NothingToErase, RootRefused, TreeNotFound
from memsvc.tree.history import erasing
from memsvc.tree.history.erasing import Target
from memsvc.tree.history.redaction import emptied, put_in_place
from memsvc.tree.models import Block, Erasure, File, Revision, Tree
from memsvc.tree.scope import Change, locked_transaction
from memsvc.tree.trees import delete_tree, list_trees, require_whole
from tenants.actors import Actor
from tenants.idempotency import answers_of, redact_answers
from tenants.models import Tenant
from tenants.services import remove_tenant, suspend_tenant

# It goes through the whole of a tree, which takes longer than single requests may.
_STATEMENT_SECONDS = 600
_ROWS_AT_ONCE = 500
# The kind that no door but a command's offers.
TENANT: Final = "tenant"


def erase(access: Access, wanted: ErasureRequest) -> Erased:
    """Erase what is asked for, archived or not, and keep a certificate of it. The access must see all of the tree.

    With `dry_run` the very same is done and rolled back. Raises `EntryNotFound`, `FileNotFound` and `NothingToErase`
    where the tree holds and held nothing of the kind, `Forbidden` and `Busy`.
    """
    require_whole(access)
    value = checked_text(wanted.value, field="value", max_bytes=MAX_VALUE_BYTES)
    if not value.strip():
        raise InvalidText("value says what is to be erased; it can't be blank")
    found = Counter[tuple[ErasurePlace, str]]()
    revision, certificate = None, None
    with suppress(_NotKept), locked_transaction(access.tree) as tree:
        with connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL statement_timeout = '{_STATEMENT_SECONDS}s'")
        if wanted.kind is ErasureKind.TREE:
            _erase_tree(access, tree, value, found)
        else:
            revision = _Erasing(
                replace(access, writable=True), wanted, _target(tree, wanted.kind, value), found
            ).run()
        found[ErasurePlace.STORED_ANSWER, ""] += redact_answers(tree.tenant_id, tree.pk)
        if wanted.dry_run:
            raise _NotKept
        counts = Counter[str]()
        for (place, _), count in found.items():
            counts[place.value] += count
        certificate = _certified(tree.tenant_id, access.actor, wanted.kind, counts)
    places = [ErasedPlace(place, where, count) for (place, where), count in sorted(found.items()) if count]
    return Erased(wanted.dry_run, revision, places, certificate)


class _NotKept(Exception):
    """Ends an erasure that was only rehearsed."""


def delete_tenant(tenant: Tenant, actor: Actor) -> ErasureCertificate:
    """Delete a tenant with everything that it has: trees, keys, members, usage, stored answers. Its certificates stay.

    Its keys are shut out first, and it goes tree by tree: what is cut short is finished by the next call.
    """
    suspend_tenant(tenant=tenant, actor=actor)
    found = Counter[str]()
    while trees := list_trees(tenant):
        for tree in trees:
            with suppress(TreeNotFound):
                wanted = ErasureRequest(tree=tree.name, kind=ErasureKind.TREE, value=tree.name)
                certificate = erase(Access(tree, actor), wanted).certificate
                found += Counter(certificate.counts if certificate else {})
    with tenant_transaction(tenant.pk):
        found += remove_tenant(tenant=tenant)
        return _certified(tenant.pk, actor, TENANT, found)


def list_erasures(tenant: Tenant, *, cursor: str | None = None, limit: int = 100) -> Page[ErasureCertificate]:
    """The certificates of a tenant, newest first."""
    with tenant_transaction(tenant.pk):
        rows, following = newest_by_id(Erasure.objects.filter(tenant=tenant), cursor=cursor, limit=limit)
    return Page([*map(_told, rows)], following)


def _certified(tenant_id: UUID, actor: Actor, kind: str, counts: Mapping[str, int]) -> ErasureCertificate:
    row = Erasure(
        tenant_id=tenant_id,
        at=timezone.now(),
        kind=kind,
        actor_kind=actor.kind,
        actor_id=actor.id,
        counts={place: count for place, count in sorted(counts.items()) if count},
    )
    row.save(force_insert=True)
    return _told(row)


def _told(row: Erasure) -> ErasureCertificate:
    return ErasureCertificate(str(row.pk), row.at, row.kind, row.actor_kind, row.actor_id, row.counts)


def _erase_tree(access: Access, tree: Tree, name: str, found: Counter[tuple[ErasurePlace, str]]) -> None:
    if name != tree.name:
        raise InvalidText("value must be the name of the tree, exactly")
    everything = Block.objects.of(tree)
    found[ErasurePlace.TREE, ""] = 1
    found[ErasurePlace.FILE, ""] = File.objects.of(tree).count()
    found[ErasurePlace.TEXT, ""] = everything.live_at(None).exclude(kind=BlockKind.ENTRY).count()
    found[ErasurePlace.ENTRY, ""] = everything.live_at(None).entries().count()
    found[ErasurePlace.HISTORY, ""] = everything.filter(removed_in__isnull=False).count()
    found[ErasurePlace.MESSAGE, ""] = Revision.objects.of(tree).exclude(message="").count()
    found[ErasurePlace.STORED_ANSWER, ""] = answers_of(tree.tenant_id, tree.pk).count()
    _count_derived(tree, None, found)
    delete_tree(access)
    with connection.cursor() as cursor:
        # One that is at work finds no tree, and goes by itself.
        cursor.execute(
            "DELETE FROM procrastinate_jobs WHERE args->>'tree' = %s AND status <> 'doing'", [str(tree.pk)]
        )
        found[ErasurePlace.JOB, ""] = cursor.rowcount


def _count_derived(
    tree: Tree, rows: Sequence[Block] | None, found: Counter[tuple[ErasurePlace, str]]
) -> None:
    """Count what refers to blocks and goes with them: whatever it is, other rooms have made it of them."""
    for relation in Block._meta.get_fields(include_hidden=True):
        model: Any = relation.related_model
        if not (relation.one_to_many and relation.auto_created):
            continue
        derived = model._base_manager.filter(tenant_id=tree.tenant_id, tree_id=tree.pk)
        if rows is not None:
            derived = derived.filter(block_id__in=[row.pk for row in rows])
        place = ErasurePlace(str(model._meta.verbose_name).replace(" ", "_"))
        found[place, ""] += derived.count()


def _target(tree: Tree, kind: ErasureKind, value: str) -> Target:
    """Everything that a value names, in whatever revision it stood."""
    target = Target(tree)
    if kind is ErasureKind.ENTRY:
        erasing.take_entries(target, [value])
        if target.is_empty:
            raise EntryNotFound(value)
    elif kind is ErasureKind.PATH:
        path = canonical_folder(value)
        if path == "/":
            raise RootRefused
        # A file that was moved is where it stands now, or stood last.
        erasing.take_files(target, File.objects.of(tree).filter(former_of=None).at_or_below(path))
        if target.is_empty:
            raise FileNotFound(path)
    elif kind is ErasureKind.SOURCE:
        said = Block.objects.of(tree).entries().filter(source=value)
        erasing.take_entries(target, {*said.values_list("entry_id", flat=True)})
    elif kind in (ErasureKind.RUN, ErasureKind.ACTOR):
        made = Revision.objects.of(tree)
        made = made.filter(run_id=value) if kind is ErasureKind.RUN else made.filter(actor_id=value)
        numbers = set(made.values_list("number", flat=True))
        if numbers:
            erasing.take_introduced(target, numbers)
    if target.is_empty:
        raise NothingToErase(kind)
    erasing.note_numbers(target)
    return target


@dataclass(slots=True)
class _Erasing:
    """One erasure of a part of a tree, whose lock is held. `found` is what it came upon."""

    access: Access
    wanted: ErasureRequest
    target: Target
    found: Counter[tuple[ErasurePlace, str]]
    paths: dict[object, str] = field(default_factory=dict)

    @property
    def tree(self) -> Tree:
        return self.target.tree

    def run(self) -> int:
        rows = File.objects.of(self.tree).filter(former_of=None)
        self.paths = dict(rows.values_list("pk", "path"))
        with services.one_revision(
            self.access, "erase", dry_run=self.wanted.dry_run, even_archived=True
        ) as change:
            self._leave_the_present(change)
        self._leave_the_past()
        self._leave_revisions()
        self._leave_files()
        return change.number - 1 if self.wanted.dry_run else change.current

    def _note(self, place: ErasurePlace, rows: Iterable[Block]) -> None:
        for row in rows:
            self.found[place, self.paths.get(row.file_id, "")] += 1

    def _leave_the_present(self, change: Change) -> None:
        """Take what is live out of the tree, as if somebody had deleted and edited it."""
        target, live = self.target, Block.objects.of(self.tree).live_at(None)
        gone = [row for row in target.rows.values() if row.removed_in is None]
        self._note(ErasurePlace.ENTRY, (row for row in gone if row.kind == BlockKind.ENTRY))
        self._note(ErasurePlace.TEXT, (row for row in gone if row.kind != BlockKind.ENTRY))
        whole = list(File.objects.of(self.tree).live_at(None).filter(pk__in=target.files))
        if whole:
            services.close(change, whole)
            for file in whole:
                self.found[ErasurePlace.FILE, file.path] += 1
        for row in gone:
            goes = row.kind == BlockKind.ENTRY and row.pk not in target.instead
            if goes and row.file_id not in target.files:
                # Its file is another one after each.
                entries.take_out(change, live.select_related("file").get(pk=row.pk))
        rewritten = {row.file_id for row in gone if row.kind != BlockKind.ENTRY or row.pk in target.instead}
        naming = list(target.names.rows_with(live))
        self._note(ErasurePlace.MENTION, naming)
        rewritten |= {row.file_id for row in naming} | target.lines.keys()
        for file in File.objects.of(self.tree).live_at(None).filter(pk__in=rewritten).order_by("path"):
            self._rewrite(change, file)
        for file in File.objects.of(self.tree).live_at(None).filter(pk__in=target.touched_files):
            self._tell_index(change, file)

    def _rewrite(self, change: Change, file: File) -> None:
        """Let a file be without what goes; one of which nothing is left goes with it."""
        target, every = self.target, list(files.live_blocks(file))
        shown = files.visible_at(change, every)
        data = b"".join(target.remains_of(row, rendered(row)) for row in shown)
        if shown and not data.strip():
            services.close(change, [file])
            return
        services.filled(change, file.path, file, data)
        for row in every:
            # What no reader sees is no part of what was filled in.
            if row not in shown and target.remains_of(row, rendered(row)) != rendered(row):
                files.close_blocks(change, file, [row])

    def _tell_index(self, change: Change, file: File) -> None:
        """Let the row of a file not go on quoting what went, where the change itself had no reason to look at it."""
        place = router.place_of(file.path)
        index, row = statements.index_row(self.tree, *place) if place else (None, None)
        if index and row and erasing.quotes_still(self.target, file.pk, row.text):
            router.upsert_row(change, replace(router.described(change, file), on=None))

    def _leave_the_past(self) -> None:
        """Let the rows of earlier revisions be without it; all that went from the present is among them by now."""
        target, tree = self.target, self.tree
        every = Block.objects.of(tree)
        gone = [row for row in every.filter(pk__in=target.rows) if row.removed_in is not None and row.size]
        self._note(
            ErasurePlace.HISTORY,
            (row for row in target.rows.values() if row.removed_in is not None and row.size),
        )
        quoting = erasing.index_rows(target)
        self._note(ErasurePlace.INDEX_ROW, (row for row, _ in quoting))
        told = [row.pk for row, _ in quoting]
        closed = every.filter(removed_in__isnull=False, size__gt=0).exclude(pk__in=[*target.rows, *told])
        naming = {row.pk: row for row in target.names.rows_with(closed)}
        for row in closed.filter(file_id__in=target.lines, kind__in=(BlockKind.TEXT, BlockKind.OPAQUE)):
            naming[row.pk] = row
        changed = {
            pk: new
            for pk, row in naming.items()
            if (new := erasing.rewritten(row, self.paths.get(row.file_id, ""), target)).text != row.text
            or (new.head, new.supersedes, new.superseded_by) != (row.head, row.supersedes, row.superseded_by)
        }
        self._note(ErasurePlace.MENTION, (naming[pk] for pk in changed))
        _count_derived(tree, [*gone, *(naming[pk] for pk in changed)], self.found)
        put = [(row, erasing.without_ids(emptied(row), target)) for row in gone]
        put += [(row, erasing.without_ids(new, target)) for row, new in quoting]
        put += [(naming[pk], new) for pk, new in changed.items()]
        for some in batched(put, _ROWS_AT_ONCE, strict=False):
            put_in_place(tree, [row for row, _ in some], [new for _, new in some])
        # A closed file's row has a hash of what it held last.
        ids = {row.file_id for row, _ in put}
        File.objects.of(tree).filter(pk__in=ids, removed_in__isnull=False).update(sha256="")

    def _leave_revisions(self) -> None:
        """Empty the messages of revisions that tell of it, or may: those in which it came, changed or went."""
        wanted, made = self.wanted, Revision.objects.of(self.tree)
        telling = Q(number__in=self.target.numbers)
        if wanted.kind in (ErasureKind.PATH, ErasureKind.ENTRY):
            telling |= Q(message__contains=wanted.value)
        self._empty_messages(telling)
        if wanted.kind is ErasureKind.RUN:
            self.found[ErasurePlace.RUN_ID, ""] += made.filter(run_id=wanted.value).update(run_id="")

    def _empty_messages(self, telling: Q) -> None:
        revisions = Revision.objects.of(self.tree).filter(telling).exclude(message="")
        for number in revisions.values_list("number", flat=True):
            self.found[ErasurePlace.MESSAGE, str(number)] += 1
        revisions.update(message="")

    def _leave_files(self) -> None:
        """Of files that are gone as a whole: say that their versions were erased, or let their paths go too."""
        tree, target = self.tree, self.target
        standing = File.objects.of(tree).live_at(None).filter(pk__in=target.touched_files).values("pk")
        left = Block.objects.of(tree).filter(file_id__in=target.touched_files, size__gt=0).values("file_id")
        gone = (
            File.objects.of(tree)
            .filter(pk__in=target.touched_files)
            .exclude(pk__in=standing)
            .exclude(pk__in=left)
        )
        ids = list(gone.values_list("pk", flat=True))
        File.objects.of(tree).of_contents(ids).update(sha256="", size=0, lines=0)
        if not self.wanted.erase_paths:
            return
        placements = File.objects.of(tree).of_contents(ids)
        paths = list(placements.values_list("path", flat=True))
        for path in paths:
            self.found[ErasurePlace.PATH, path] += 1
            rows = list(erasing.rows_about(tree, path).filter(removed_in__isnull=False, size__gt=0))
            put_in_place(tree, rows, [emptied(row) for row in rows])
            self._empty_messages(Q(message__contains=path))
        rows_of_files = {
            "tree_redaction": ("file_id", ids),
            "tree_block": ("file_id", ids),
            "tree_file": ("id", list(placements.values_list("pk", flat=True))),
        }
        # By table: Django would look up what refers to them without their tenant.
        for table, (column, gone_ids) in rows_of_files.items():
            execute(
                f"DELETE FROM {table} WHERE tenant_id = %s AND tree_id = %s AND {column} = ANY(%s)",
                [tree.tenant_id, tree.pk, gone_ids],
            )
