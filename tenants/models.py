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


class Tenant(models.Model):
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
    tree = models.TextField(default="", blank=True, help_text="The one tree it opens; empty for every tree.")
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
