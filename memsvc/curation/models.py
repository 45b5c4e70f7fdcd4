from typing import ClassVar

from django.db import models

from memsvc.format import BlockKind
from memsvc.tree.models import Block


class EntryManager(models.Manager["Entry"]):
    def get_queryset(self) -> models.QuerySet["Entry"]:
        return super().get_queryset().filter(kind=BlockKind.ENTRY)


class Entry(Block):
    """The blocks that are entries, under the name that people know them by."""

    objects: ClassVar[EntryManager] = EntryManager()  # type: ignore[assignment]  # of entries only

    class Meta:
        proxy = True
        verbose_name_plural = "entries"
