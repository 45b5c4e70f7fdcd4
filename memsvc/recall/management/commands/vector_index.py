from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError

from memsvc.database.rights import OWNER, connected_as
from memsvc.recall import ann_index
from memsvc.recall.embedding import EmbeddingError, embedder


class Command(BaseCommand):
    help = (
        "Make the index by which search finds the nearest vectors in large trees, for vectors as the model of "
        "MEMSVC_EMBEDDER makes them. That of the local model is there already. Others may read and write meanwhile; "
        "the worker then puts the vectors of large trees into it."
    )

    def handle(self, **options: object) -> None:
        try:
            model = embedder()
            dimensions = model.dimensions if model else 0
        except EmbeddingError as error:
            raise CommandError(
                f"The model can't be asked how many numbers its vectors have: {error}"
            ) from error
        if not dimensions:
            raise CommandError("MEMSVC_EMBEDDER is none, so there are no vectors; name a model first.")
        if dimensions > ann_index.MAX_DIMENSIONS:
            raise CommandError(
                f"Its vectors have {dimensions} numbers and the index takes {ann_index.MAX_DIMENSIONS}; "
                "search compares all of them instead."
            )
        try:
            with connected_as(OWNER):
                made = ann_index.make_index(dimensions)
        except ImproperlyConfigured as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{ann_index.index_name(dimensions)}: {'made' if made else 'there already'}")
