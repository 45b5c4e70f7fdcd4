"""Who did it: the name that every revision keeps."""

from dataclasses import dataclass
from enum import StrEnum

from memsvc.contract.requests import checked_run_id


class ActorKind(StrEnum):
    KEY = "key"
    MEMBER = "member"
    JOB = "job"
    OPERATOR = "operator"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class Actor:
    """An API key, a member, a job, an operator or the service itself; `id` stays unique when a name is used again.

    `run_id` says in which run of an agent it acts, where that is known: up to 200 characters. Raises `InvalidText`.
    `address` is that of the client, for the audit, and `reason` what an operator gives as the reason.
    """

    kind: ActorKind
    id: str
    name: str
    run_id: str = ""
    address: str = ""
    reason: str = ""

    def __post_init__(self) -> None:
        checked_run_id(self.run_id)


SYSTEM = Actor(ActorKind.SYSTEM, "system", "memsvc")
