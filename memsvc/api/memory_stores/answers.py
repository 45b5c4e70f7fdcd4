"""What this door answers, each object with all its members, always."""

from uuid import UUID

from memsvc.api.memory_stores.ids import memory_id, store_id, version_id
from memsvc.tree.models import Tree
from memsvc.tree.results import Memory, MemoryVersion
from tenants.actors import ActorKind

type Json = dict[str, object]


def store(tree: Tree) -> Json:
    told = [at for at in (tree.described_at, tree.archived_at) if at is not None]
    return {
        "id": store_id(tree.pk),
        "type": "memory_store",
        "name": tree.title or tree.name,
        "description": tree.description,
        "metadata": tree.metadata,
        "created_at": tree.created_at,
        "updated_at": max([tree.created_at, *told]),
        "archived_at": tree.archived_at,
    }


def memory(tree: UUID, found: Memory, *, with_content: bool = True) -> Json:
    return {
        "id": memory_id(found.id),
        "type": "memory",
        "memory_store_id": store_id(tree),
        "memory_version_id": version_id(found.id, found.version),
        "path": found.path,
        "content": found.text if with_content else None,
        "content_sha256": found.sha256,
        "content_size_bytes": found.size,
        "created_at": found.created_at,
        "updated_at": found.updated_at,
    }


def listed(tree: UUID, found: Memory | str) -> Json:
    """A memory, or a folder, whose path ends in a slash."""
    return {"type": "memory_prefix", "path": found} if isinstance(found, str) else memory(tree, found)


def version(tree: UUID, found: MemoryVersion) -> Json:
    redaction, made = found.redaction, found.revision
    return {
        "id": version_id(found.memory, made.number),
        "type": "memory_version",
        "memory_store_id": store_id(tree),
        "memory_id": memory_id(found.memory),
        "operation": found.operation,
        "path": found.path,
        "content": found.text,
        "content_sha256": found.sha256,
        "content_size_bytes": found.size,
        "created_at": made.at,
        "created_by": actor(made.actor_kind, made.actor_id),
        "redacted_at": redaction.at if redaction else None,
        "redacted_by": actor(redaction.actor_kind, redaction.actor_id) if redaction else None,
    }


def actor(kind: str, actor_id: str) -> Json:
    """A person, or whatever wrote with a key; the service itself and its jobs count as keys of their own."""
    if kind == ActorKind.MEMBER:
        return {"type": "user_actor", "user_id": actor_id}
    return {"type": "api_actor", "api_key_id": actor_id}
