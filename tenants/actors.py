"""Who did it: the name that every revision keeps."""

from dataclasses import dataclass
from enum import StrEnum


class ActorKind(StrEnum):
    KEY = "key"
    MEMBER = "member"
    JOB = "job"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class Actor:
    """An API key, a member, a job or the service itself; `id` stays unique when a name is used again."""

    kind: ActorKind
    id: str
    name: str


SYSTEM = Actor(ActorKind.SYSTEM, "system", "memsvc")
