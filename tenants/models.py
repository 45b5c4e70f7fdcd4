from dataclasses import dataclass
from uuid import UUID

from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from memsvc.database.colocation import OfTenant
from memsvc.database.ids import uuid7
from tenants.actors import Actor, ActorKind
from tenants.scopes import Scope

SLUG_PATTERN = r"^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\Z"


class User(AbstractUser):
    """A person who logs in to the admin; agents and programs use keys instead."""

    @property
    def actor(self) -> Actor:
        return Actor(ActorKind.MEMBER, str(self.pk), self.get_username())


class AuditChain(models.Model):
    """A row at which a chain of audit events ends: how many they are, and the digest of the last."""

    audit_number = models.BigIntegerField(default=0, db_default=0, editable=False)
    audit_digest = models.CharField(max_length=64, default="", db_default="", blank=True, editable=False)

    class Meta:
        abstract = True

    @property
    def of_tenant(self) -> UUID:
        tenant_id: UUID = getattr(self, "tenant_id", self.pk)
        return tenant_id


class Tenant(AuditChain):
    """A customer. While it is suspended, none of its keys works."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    slug = models.CharField(
        max_length=63,
        unique=True,
        validators=[RegexValidator(SLUG_PATTERN, "Use lower-case letters, digits and inner hyphens.")],
    )
    name = models.CharField(max_length=200)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    suspended_at = models.DateTimeField(null=True, blank=True)
    # None keeps all of it.
    history_days = models.PositiveIntegerField(
        null=True, blank=True, help_text="How many days of history are kept; empty for all of it."
    )

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(slug__regex=SLUG_PATTERN), name="tenant_slug_is_a_slug"),
        ]

    def __str__(self) -> str:
        return self.slug

    @property
    def is_suspended(self) -> bool:
        return self.suspended_at is not None


class Role(models.TextChoices):
    OWNER = "owner"
    MODERATOR = "moderator"
    VIEWER = "viewer"


class Membership(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role.choices)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "user"], name="membership_unique"),
            models.CheckConstraint(condition=Q(role__in=Role.values), name="membership_role_is_known"),
        ]

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.tenant}"


@dataclass(frozen=True, slots=True)
class OneTree:
    """The one tree that a key opens: this very tree, shown by its name; without an id, none that there is."""

    id: UUID | None
    name: str


class ApiKey(models.Model):
    """What an agent or program shows to be let in. The key itself is nowhere: only its keyed hash is kept."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="keys")
    name = models.CharField(max_length=100)
    # The key is looked up by its public part, before its tenant is known: unique over all tenants.
    prefix = models.CharField(max_length=8, unique=True, editable=False)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    scopes = ArrayField(
        models.CharField(max_length=16, choices=[(scope.value, scope.value) for scope in Scope])
    )
    # Shown to people. What it opens says `tree_id`: the next tree that gets the name is another one.
    tree = models.TextField(default="", blank=True, help_text="The one tree it opens; empty for every tree.")
    # Stays when the tree goes, so that nothing is opened from then on.
    tree_id = models.UUIDField(null=True, blank=True, editable=False)
    path_prefix = models.TextField(default="/", help_text="The folder it opens; / for all.")
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    last_used_at = models.DateTimeField(null=True, blank=True)
    last_used_ip = models.GenericIPAddressField(null=True, blank=True)

    class Meta:
        verbose_name = "API key"

    def __str__(self) -> str:
        return f"{self.name} (msk_{self.prefix}_…)"

    @property
    def actor(self) -> Actor:
        return Actor(ActorKind.KEY, str(self.pk), self.name)

    @property
    def one_tree(self) -> OneTree | None:
        """The limit to one tree; None for every tree of the tenant."""
        return OneTree(self.tree_id, self.tree) if self.tree else None

    @property
    def only_trees(self) -> frozenset[UUID] | None:
        """The ids of the trees that it is limited to, at most one; None for every tree of the tenant."""
        if not self.tree:
            return None
        return frozenset() if self.tree_id is None else frozenset({self.tree_id})

    @property
    def is_valid(self) -> bool:
        """Whether it opens anything at this moment; reads `tenant` too."""
        if self.revoked_at is not None or self.tenant.is_suspended:
            return False
        return self.expires_at is None or self.expires_at > timezone.now()


class KeyUsage(models.Model):
    """How many requests a key made on a day, in UTC; written in batches, see `tenants.last_use`."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+", db_index=False)
    key = models.ForeignKey(ApiKey, on_delete=models.CASCADE, related_name="usage")
    day = models.DateField()
    requests = models.BigIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "day", "key"], name="key_usage_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.requests} on {self.day}"


class StoredAnswer(OfTenant):
    """The answer to a write that had an Idempotency-Key: what its repeats are answered, instead of doing it again.

    It stands in the transaction of the write itself, so that there is one exactly when the write was done.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+", db_index=False)
    # Keyed digests, of the key and of the request.
    key = models.CharField(max_length=255, db_collation="C")
    fingerprint = models.CharField(max_length=64)
    # The tree whose content the answer may hold, which takes the answer along when it is deleted.
    tree_id = models.UUIDField(null=True)
    # 0 until the write is done: no other transaction ever sees that.
    status = models.SmallIntegerField(default=0)
    headers = models.JSONField(default=dict)
    body = models.BinaryField(default=b"")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "key"], name="stored_answer_key_unique"),
        ]
        indexes = [
            models.Index(fields=["tenant", "created_at"], name="stored_answer_age"),
            models.Index(
                fields=["tenant", "tree_id"], condition=Q(tree_id__isnull=False), name="stored_answer_tree"
            ),
        ]

    def __str__(self) -> str:
        return self.key


class AuditEvent(models.Model):
    """One act, in its chain; it may be added and is never changed. What each column says: `AuditEventRead`."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    # Whoever serves can add none to another tenant, and a chain outlives what it is about.
    tenant = models.ForeignKey(
        Tenant, on_delete=models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False
    )
    # The id of the tree or of the tenant.
    chain = models.UUIDField()
    number = models.BigIntegerField()
    digest = models.CharField(max_length=64)
    at = models.DateTimeField()
    action = models.CharField(max_length=255)
    outcome = models.CharField(max_length=64)
    times = models.IntegerField(default=1)
    actor_kind = models.CharField(max_length=8, choices=[(kind.value, kind.value) for kind in ActorKind])
    actor_id = models.TextField(blank=True)
    address = models.CharField(max_length=45, blank=True)
    request_id = models.CharField(max_length=64, blank=True)
    tree_id = models.UUIDField(null=True, blank=True)
    revision = models.BigIntegerField(null=True, blank=True)
    object_id = models.TextField(blank=True)
    reason = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "chain", "number"], name="audit_event_number_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.action} at {self.at:%Y-%m-%d %H:%M:%S}"
