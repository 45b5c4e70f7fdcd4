"""What is made out of entries or noted about them, beside the blocks that hold them."""

from django.db import models
from pgvector.django import HalfVectorField

from memsvc.database.colocation import OfTenant, TenantForeignKey
from memsvc.database.ids import uuid7
from memsvc.tree.models import Block, Tree
from memsvc.tree.visibility import EXPIRING
from tenants.models import Tenant


class DerivedRow(OfTenant):
    """Whose a row is. Its references are composite keys in the first migration, as those of the tree's own rows."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = models.ForeignKey(
        Tenant, on_delete=models.CASCADE, related_name="+", db_constraint=False, db_index=False
    )
    tree = TenantForeignKey(
        Tree, on_delete=models.CASCADE, related_name="+", db_constraint=False, db_index=False
    )

    class Meta:
        abstract = True


class Vector(DerivedRow):
    """A part of an entry as a model sees it, at half precision. Short entries have one part, number 0."""

    block = TenantForeignKey(
        Block, on_delete=models.CASCADE, related_name="+", db_constraint=False, db_index=False
    )
    part = models.SmallIntegerField()
    model = models.TextField()
    # Models differ in how many numbers a vector has.
    embedding = HalfVectorField()
    # The block's, by which vectors go when nothing but time has passed.
    expires_at = models.DateTimeField(null=True, blank=True)
    # How many numbers it has, where it is in the index of such vectors, which `near` is about; else 0.
    indexed = models.SmallIntegerField(default=0, db_default=0)

    class Meta:
        # Finds all vectors of a tree as well. With an index for these alone, the planner takes it also for one entry's.
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "tree", "block", "model", "part"], name="vector_part_unique"
            )
        ]
        indexes = [
            models.Index(fields=["expires_at"], condition=EXPIRING, name="vector_expiry"),
        ]

    def __str__(self) -> str:
        return f"part {self.part} of {self.block_id} by {self.model}"


class EmbeddedTree(DerivedRow):
    """How far a model has got: all entries of the tree that stand as of `revision` have their vectors.

    Where it is `indexed`, all vectors of the tree are in the index, and new ones go there at once.
    """

    model = models.TextField()
    revision = models.BigIntegerField()
    indexed = models.BooleanField(default=False, db_default=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "tree", "model"], name="embedded_tree_unique")
        ]

    def __str__(self) -> str:
        return f"{self.tree_id} through {self.revision} by {self.model}"


class AccessCount(DerivedRow):
    """How often an entry was found or read, and when last; apart from the entry, whose row no read changes."""

    block = TenantForeignKey(
        Block, on_delete=models.CASCADE, related_name="+", db_constraint=False, db_index=False
    )
    count = models.BigIntegerField()
    last_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "tree", "block"], name="access_count_unique")
        ]

    def __str__(self) -> str:
        return f"{self.count} accesses to {self.block_id}"
