"""The rows of a tree.

Nothing is overwritten: a change closes a row (`removed_in = n`) and adds its successor (`added_in = n`), so a
row is part of revision n when `added_in <= n` and it was not removed by then. Files are their blocks in order.

Every row carries its tenant, and every reference is by (tenant, id): the composite foreign keys stand in the
first migration as SQL, because a plain one would let a row point into another tenant.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from uuid import UUID

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex, OpClass
from django.db import models
from django.db.models import F, OuterRef, Q, Subquery
from django.db.models.expressions import RawSQL
from django.db.models.functions import Now
from django.db.models.sql.datastructures import BaseTable

from memsvc.contract.accounts import LANGUAGES
from memsvc.contract.requests import RevisionFilter
from memsvc.database.colocation import OfTenant, TenantForeignKey
from memsvc.database.ids import uuid7
from memsvc.database.rights import SEARCHED
from memsvc.format import BlockKind, Confidence, MemoryCategory, Metadata, in_utc
from memsvc.format.terms import Terms
from memsvc.tree import visibility
from memsvc.tree.errors import RevisionNotFound, RevisionPruned
from memsvc.tree.visibility import EXPIRING
from tenants.actors import Actor, ActorKind
from tenants.models import AuditChain, Tenant

DEFAULT_LANGUAGE = "english"
LIVE = visibility.live_at(None)


def _to_tenant() -> models.ForeignKey[Tenant, Tenant]:
    # Checked by the composite keys, which go by way of the tree.
    return models.ForeignKey(
        Tenant, on_delete=models.CASCADE, related_name="+", db_constraint=False, db_index=False
    )


# Django's fields take type arguments in their stubs only.
if TYPE_CHECKING:
    TextField = models.TextField[str, str]
else:
    TextField = models.TextField


class BytewiseTextField(TextField):
    """Text that is compared byte by byte: code-point order, and prefixes that use the index."""

    def __init__(self, **options: object) -> None:
        super().__init__(**{**options, "db_collation": "C"})  # type: ignore[arg-type]


class Tree(AuditChain, OfTenant):
    """One isolated set of files. Its row is the lock of every writer, and holds the newest revision's number."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="trees")
    name = BytewiseTextField()
    description = models.TextField(default="", blank=True)
    # Whose words are stemmed, and which of them say nothing: a text search configuration of Postgres.
    language = models.CharField(
        max_length=16, default=DEFAULT_LANGUAGE, choices=[(name, name) for name in LANGUAGES]
    )
    # What people call it where that need not be unique; the name itself when it is empty.
    title = models.TextField(default="", blank=True)
    metadata = models.JSONField(default=dict, blank=True)
    # When title, description or metadata were last changed.
    described_at = models.DateTimeField(null=True, blank=True)
    revision = models.BigIntegerField(default=0)
    # Of the entries that hold and never expire: how many there are, and how many different terms they have in all.
    entry_count = models.BigIntegerField(default=0)
    term_count = models.BigIntegerField(default=0)
    # Set by an import, which keeps index files as they came: the next change gives every file its row.
    index_behind = models.BooleanField(default=False)
    created_at = models.DateTimeField(db_default=Now())
    # From then on it may be read and copied, and no longer changed.
    archived_at = models.DateTimeField(null=True, blank=True)
    # The oldest revision that can be read. Rows that only earlier ones held are gone, or about to go.
    history_from = models.BigIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "name"], name="tree_name_unique"),
            models.UniqueConstraint(fields=["tenant", "id"], name="tree_id_unique_in_tenant"),
        ]
        indexes = [
            models.Index(F("tenant"), F("created_at").desc(), F("id").desc(), name="tree_newest"),
        ]

    def __str__(self) -> str:
        return self.name

    def require_revision(self, number: int) -> None:
        """Raise unless the tree can be read as of a revision: `RevisionNotFound`, `RevisionPruned`."""
        if not 0 <= number <= self.revision:
            raise RevisionNotFound(number, self.revision)
        if number < self.history_from:
            raise RevisionPruned(number, self.history_from)


class TreeRow(OfTenant):
    """What all rows inside a tree share: whose they are, and the revisions between which they stand."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = _to_tenant()
    tree = TenantForeignKey(
        Tree, on_delete=models.CASCADE, related_name="+", db_constraint=False, db_index=False
    )
    added_in = models.BigIntegerField()
    removed_in = models.BigIntegerField(null=True, blank=True)

    class Meta:
        abstract = True

    def is_live_at(self, revision: int) -> bool:
        return visibility.is_live_at(self, revision)


class OfTreeQuerySet[T: models.Model](models.QuerySet[T]):
    def of(self, tree: Tree) -> Self:
        return self.filter(tenant_id=tree.tenant_id, tree_id=tree.pk)


class TreeRowQuerySet[T: TreeRow](OfTreeQuerySet[T]):
    def live_at(self, revision: int | None) -> Self:
        """The rows of one revision; of the newest one when it is None."""
        return self.filter(visibility.live_at(revision))

    def alive_since(self, revision: int) -> Self:
        """The rows that this revision or a later one holds."""
        return self.filter(visibility.alive_since(revision))


class FileQuerySet(TreeRowQuerySet["File"]):
    def under(self, folder: str) -> Self:
        """The files below a folder, at any depth; by a range, which a row-level policy leaves to the index."""
        if folder == "/":
            return self
        # "0" is the character after "/".
        return self.filter(path__gt=folder + "/", path__lt=folder + "0")

    def of_contents(self, ids: Collection[UUID]) -> Self:
        """The rows of files, those of their former paths too, by what their blocks refer to."""
        return self.filter(Q(pk__in=ids) | Q(former_of__in=ids))

    def at_or_below(self, path: str) -> Self:
        """The file at a path, or those below that folder."""
        below = Q(path__gt=path + "/", path__lt=path + "0")
        return self if path == "/" else self.filter(Q(path=path) | below)


class File(TreeRow):
    """A path and the file that stands there from `added_in` to `removed_in`.

    `size`, `lines` and `sha256` describe the newest content, hidden blocks left out; `sha256` is null when it
    has not been computed since the last append. A moved file keeps its row, and with it its blocks; a closed
    row with `former_of` keeps the old path for the revisions in which it stood there.
    """

    path = BytewiseTextField()
    parent = BytewiseTextField()
    size = models.BigIntegerField(default=0)
    lines = models.BigIntegerField(default=0)
    is_text = models.BooleanField(default=True)
    newline = models.CharField(max_length=2, default="\n")
    sha256 = models.CharField(max_length=64, default="", blank=True)
    # The earliest moment at which a block of this file disappears by itself: from then on size and lines are counted.
    next_expiry = models.DateTimeField(null=True, blank=True)
    created_in = models.BigIntegerField()
    changed_in = models.BigIntegerField()
    created_at = models.DateTimeField()
    modified_at = models.DateTimeField()
    # The newest `removed_in` of its blocks that retention has removed since, so that `changed` can still be told.
    pruned_in = models.BigIntegerField(default=0)
    former_of = TenantForeignKey(
        "self", on_delete=models.CASCADE, null=True, blank=True, related_name="+", db_constraint=False
    )

    objects = FileQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "tree", "path"], condition=LIVE, name="file_path_unique"
            ),
            models.UniqueConstraint(fields=["tenant", "tree", "id"], name="file_id_unique_in_tree"),
        ]
        indexes = [
            models.Index(fields=["tenant", "tree", "parent", "path"], name="file_folder"),
            models.Index(fields=["tenant", "tree", "path"], name="file_path_history"),
            # What a revision brought, moved or took away.
            models.Index(fields=["tenant", "tree", "added_in"], name="file_added_in"),
            models.Index(
                fields=["tenant", "tree", "removed_in"],
                condition=Q(removed_in__isnull=False),
                name="file_removed_in",
            ),
        ]

    def __str__(self) -> str:
        return self.path

    @property
    def content_id(self) -> UUID:
        """The row that the blocks of this file refer to."""
        return self.former_of_id or self.pk


class EntryRow(NamedTuple):
    """What an entry is read from and nothing else: half of its columns, and no model, which would cost as much again.

    `path` is where its file is, `authors` what `authors_sql` tells.
    """

    id: UUID
    file_id: UUID
    position: int
    head: str
    text: str
    expires_at: datetime | None
    entry_id: str
    category: str
    created: datetime
    claimed: datetime | None
    source: str
    confidence: str
    summary: str
    tags: Sequence[str]
    supersedes: str
    metadata: Metadata
    superseded_by: str
    superseded_in: int | None
    added_in: int
    first_in: int | None
    changed_in: int | None
    path: str
    authors: str


def authors_sql(block: str) -> str:
    """Who made the revisions that an entry names, as arrays in JSON one after the other: number, time, kind, id and
    name of the actor, run. Takes the tenant.

    Looked up for each row that is answered, and by a column as it stands: of a join, and of an expression, the planner
    thinks that it finds many.
    """
    return f"""coalesce((
        SELECT string_agg(json_build_array(r.number, r.at, r.actor_kind, r.actor_id, r.actor_name, r.run_id)::text, ',')
        FROM tree_revision r WHERE r.tenant_id = %s AND r.tree_id = {block}.tree_id
          AND r.number = ANY (ARRAY[{block}.added_in, {block}.first_in, {block}.changed_in])
    ), '')"""


class BlockQuerySet(TreeRowQuerySet["Block"]):
    def visible(self) -> Self:
        """Without the blocks that no agent may see any more, whichever door it comes through."""
        return self.filter(visibility.visible(Now()))

    def of_file(self, file: File) -> Self:
        return self.filter(tenant_id=file.tenant_id, file_id=file.content_id).order_by("position")

    def entries(self) -> Self:
        return self.filter(kind=BlockKind.ENTRY)

    def with_paths_and_authors(self, tree: Tree) -> Self:
        """Each with the path of the file that it is in, as `path`, and who wrote it, as `authors`.

        Not as a join: the planner, who doesn't know how few files of other tenants there may be, would expect that few
        blocks pass it.
        """
        file = File.objects.of(tree).filter(pk=OuterRef("file_id"))
        authors = RawSQL(authors_sql("tree_block"), [tree.tenant_id], models.TextField())
        return self.annotate(path=Subquery(file.values("path")), authors=authors)

    def read(self) -> list[EntryRow]:
        """The entries of a queryset `with_paths_and_authors`."""
        return [EntryRow(*values) for values in self.values_list(*EntryRow._fields)]

    def searched(self) -> Self:
        """The same rows by way of a view that leaves full text and LIKE their indexes: see `memsvc.database.rights`."""
        rows = self.all()
        # Under the table's own name, so that whatever is asked of its columns stays as it is.
        name = rows.query.get_initial_alias()
        rows.query.alias_map[name] = BaseTable(SEARCHED, name)
        rows.query.table_map[SEARCHED] = [name]
        return rows


class Block(TreeRow):
    """A run of a file's bytes: free text, one entry, one entry that can't be used, or one row of an index.

    The bytes are `head` (the frontmatter with the blank lines above it; empty for other kinds) and then `text`.
    Bytes that Postgres can't keep as text are in `raw` instead, and `head` and `text` show them as well as they can.
    """

    file = TenantForeignKey(
        File, on_delete=models.CASCADE, related_name="blocks", db_constraint=False, db_index=False
    )
    # Gaps are left between positions; the order of a file's blocks never changes by a new numbering.
    position = models.BigIntegerField()
    kind = models.CharField(max_length=6, choices=[(kind.value, kind.value) for kind in BlockKind])
    head = models.TextField(default="", blank=True)
    text = models.TextField(default="", blank=True)
    raw = models.BinaryField(null=True, blank=True)
    size = models.BigIntegerField()
    lines = models.BigIntegerField()
    reason = models.TextField(default="", blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)

    entry_id = BytewiseTextField(default="", blank=True)
    # A second block with an id that an earlier path already has: kept in its file, never found by its id.
    duplicate = models.BooleanField(default=False)
    category = models.CharField(
        max_length=16, default="", blank=True, choices=[(c.value, c.value) for c in MemoryCategory]
    )
    # Of an entry: by what it is ordered. That is what it says of itself, and where it says a time that was still to
    # come, the moment at which it was written; then `claimed` is what it says.
    created = models.DateTimeField(null=True, blank=True)
    claimed = models.DateTimeField(null=True, blank=True)
    source = models.TextField(default="", blank=True)
    confidence = models.CharField(
        max_length=6, default="", blank=True, choices=[(c.value, c.value) for c in Confidence]
    )
    summary = models.TextField(default="", blank=True)
    tags = ArrayField(models.TextField(), default=list, blank=True)
    # The tags as they are compared: case-folded.
    tag_keys = ArrayField(models.TextField(), default=list, blank=True)
    supersedes = models.TextField(default="", blank=True)
    # What the entry's frontmatter says besides. In no index: a filter looks at the rows of one tree.
    metadata = models.JSONField(default=dict, db_default={}, blank=True)
    # Of a row of an index: the file it is about, relative to the index's folder.
    row_path = BytewiseTextField(default="", blank=True)
    search_text = models.TextField(default="", blank=True)
    # In no index and no index's condition, so that retiring an entry rewrites no index (a HOT update).
    superseded_by = models.TextField(default="", blank=True)
    superseded_in = models.BigIntegerField(null=True, blank=True)
    # Bytes that `superseded_by` adds when the block is rendered; 0 when the text itself says it.
    spliced = models.SmallIntegerField(default=0)
    # The revision of each line, where some are older than the block and what they came from has been removed.
    line_revisions = ArrayField(models.BigIntegerField(), null=True, blank=True)

    # Of an entry: the revision in which one of its id first came into the tree (0 where nobody can tell any more), and
    # the one that last changed what it says; each only where it isn't `added_in`.
    first_in = models.BigIntegerField(null=True, blank=True)
    changed_in = models.BigIntegerField(null=True, blank=True)

    # No column: where its file is, if that was read along.
    path: str
    # No column: what an entry that is not stored yet will be found by, where that was worked out before the lock.
    known_terms: Terms | None = None

    objects = BlockQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "tree", "entry_id"],
                condition=LIVE & Q(kind="entry", duplicate=False),
                name="block_entry_id_unique",
            ),
        ]
        indexes = [
            models.Index(fields=["tenant", "file", "position"], condition=LIVE, name="block_live"),
            # What a file was: those that stood in a revision are found without a look at all that ever did.
            models.Index(fields=["tenant", "file", "removed_in", "added_in"], name="block_stay"),
            # The few that may be hidden.
            models.Index(fields=["tenant", "file"], condition=EXPIRING, name="block_expiring"),
            models.Index(
                fields=["tenant", "file", "row_path"], condition=LIVE & Q(kind="row"), name="block_row"
            ),
            models.Index(
                fields=["tenant", "tree", "entry_id"],
                condition=LIVE & Q(duplicate=True),
                name="block_duplicate",
            ),
            models.Index(
                fields=["tenant", "tree"],
                condition=LIVE & EXPIRING & Q(kind="entry"),
                name="block_expiring_entry",
            ),
            # What a revision changed.
            models.Index(fields=["tenant", "tree", "added_in"], name="block_added_in"),
            models.Index(
                fields=["tenant", "tree", "removed_in"],
                condition=Q(removed_in__isnull=False),
                name="block_removed_in",
            ),
            models.Index(
                fields=["tenant", "tree", "entry_id"], condition=Q(kind="entry"), name="block_entry_history"
            ),
            models.Index(
                F("tenant"),
                F("tree"),
                F("created").desc(),
                F("id").desc(),
                condition=LIVE & Q(kind="entry"),
                name="block_newest",
            ),
            models.Index(
                F("tenant"),
                F("tree"),
                F("category"),
                F("created").desc(),
                F("id").desc(),
                condition=LIVE & Q(kind="entry"),
                name="block_newest_of_category",
            ),
            GinIndex(
                F("tree"),
                OpClass(F("search_text"), name="gin_trgm_ops"),
                condition=LIVE & Q(kind="entry"),
                name="block_search_text",
            ),
        ]

    def __str__(self) -> str:
        return self.entry_id or f"{self.kind} at {self.position}"

    @property
    def said(self) -> datetime | None:
        """When an entry says that it was made, or a row of an index what it tells."""
        return self.claimed or self.created

    @property
    def is_redacted(self) -> bool:
        """Whether nothing is left of what stood here: no other block is without a byte."""
        return self.size == 0


class RevisionQuerySet(OfTreeQuerySet["Revision"]):
    def matching(self, wanted: RevisionFilter) -> Self:
        """Those that a filter asks for by what their rows say; of what they changed these say nothing."""
        found = self
        if wanted.actor is not None:
            found = found.filter(actor_id=wanted.actor)
        if wanted.since is not None:
            found = found.filter(at__gte=in_utc(wanted.since))
        if wanted.until is not None:
            found = found.filter(at__lt=in_utc(wanted.until))
        if wanted.run_id is not None:
            found = found.filter(run_id=wanted.run_id)
        return found


class Revision(OfTenant):
    """One committed change of a tree; numbers have no gaps, and all that carries one happened at once."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = _to_tenant()
    tree = TenantForeignKey(
        Tree, on_delete=models.CASCADE, related_name="revisions", db_constraint=False, db_index=False
    )
    number = models.BigIntegerField()
    at = models.DateTimeField()
    actor_kind = models.CharField(max_length=8, choices=[(kind.value, kind.value) for kind in ActorKind])
    actor_id = models.TextField()
    actor_name = models.TextField()
    # Which run of an agent asked for it; empty where that wasn't said.
    run_id = models.TextField(default="", db_default="", blank=True)
    action = models.CharField(max_length=32)
    message = models.TextField(default="", blank=True)

    objects = RevisionQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "tree", "number"], name="revision_number_unique")
        ]
        indexes = [
            # Of the few revisions of a run, whose tree may have any number of others.
            models.Index(
                fields=["tenant", "tree", "run_id", "number"],
                condition=~Q(run_id=""),
                name="revision_of_run",
            )
        ]

    def __str__(self) -> str:
        return f"revision {self.number}"

    @classmethod
    def by(cls, actor: Actor, **columns: Any) -> Self:
        """A revision that an actor makes."""
        return cls(
            actor_kind=actor.kind,
            actor_id=actor.id,
            actor_name=actor.name,
            run_id=actor.run_id,
            **columns,
        )


class Redaction(OfTenant):
    """That what a file held from a revision on, until it changed again, was taken out of its history for good."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = _to_tenant()
    tree = TenantForeignKey(
        Tree, on_delete=models.CASCADE, related_name="+", db_constraint=False, db_index=False
    )
    file = TenantForeignKey(
        File, on_delete=models.CASCADE, related_name="+", db_constraint=False, db_index=False
    )
    number = models.BigIntegerField()
    at = models.DateTimeField()
    actor_kind = models.CharField(max_length=8, choices=[(kind.value, kind.value) for kind in ActorKind])
    actor_id = models.TextField()
    actor_name = models.TextField()

    objects = OfTreeQuerySet["Redaction"].as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "tree", "file", "number"], name="redaction_unique")
        ]

    def __str__(self) -> str:
        return f"redaction of revision {self.number}"


class Erasure(OfTenant):
    """The certificate of an erasure: what kind of thing went, when, by whom, and how much of it. Nothing else stays.

    It refers to nothing that may go: it outlives the tree, and the tenant. It is added and never changed.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = models.ForeignKey(
        Tenant, on_delete=models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False
    )
    at = models.DateTimeField()
    kind = models.CharField(max_length=8)
    actor_kind = models.CharField(max_length=8, choices=[(kind.value, kind.value) for kind in ActorKind])
    # No name: that may be a person's.
    actor_id = models.TextField()
    counts = models.JSONField(default=dict, blank=True)

    class Meta:
        indexes = [models.Index(F("tenant"), F("id").desc(), name="erasure_newest")]

    def __str__(self) -> str:
        return f"erasure of a {self.kind}"
