"""A model behind an HTTP endpoint that speaks OpenAI's embeddings protocol."""

import random
import time
from collections.abc import Sequence
from typing import Any

import httpx

from memsvc.recall.embedding import EmbeddingError, Vector, Vectors, checked

_TEXTS_AT_ONCE = 64
_TRIES = 4
_LONGEST_PAUSE = 20.0
_TIMEOUT = httpx.Timeout(30, connect=5)
# Somebody waits for the answer to a query, and gets the lexical one when there is none.
_QUERY_TIMEOUT = httpx.Timeout(3)
_QUOTED = 300


class Endpoint:
    """`url` is the base URL as clients of the protocol take it: `/embeddings` is put after it.

    Busy, failing and unreachable servers are asked again, with growing pauses; a query is asked once.
    """

    def __init__(self, url: str, key: str, model: str) -> None:
        self.name = f"openai/{model}"
        self._model = model
        self._url = url.rstrip("/") + "/embeddings"
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._client = httpx.Client(headers=headers, timeout=_TIMEOUT)
        self._dimensions: int | None = None

    @property
    def dimensions(self) -> int:
        if self._dimensions is None:
            self._dimensions = len(self.embed_query("dimensions"))
        return self._dimensions

    def embed(self, texts: Sequence[str]) -> Vectors:
        rows: list[Any] = []
        for start in range(0, len(texts), _TEXTS_AT_ONCE):
            some = list(texts[start : start + _TEXTS_AT_ONCE])
            rows += self._rows(self._answer(some, tries=_TRIES, timeout=_TIMEOUT), len(some))
        return checked(rows, len(texts))

    def embed_query(self, text: str) -> Vector:
        answer = self._answer([text], tries=1, timeout=_QUERY_TIMEOUT)
        vector: Vector = checked(self._rows(answer, 1), 1)[0]
        return vector

    def _answer(self, texts: list[str], *, tries: int, timeout: httpx.Timeout) -> httpx.Response:
        for failed in range(tries):
            last = failed + 1 == tries
            try:
                answer = self._client.post(
                    self._url, json={"model": self._model, "input": texts}, timeout=timeout
                )
            except httpx.HTTPError as error:
                if last:
                    raise EmbeddingError(f"{self._url}: {type(error).__name__}: {error}") from error
                time.sleep(_pause(failed))
                continue
            if answer.is_success:
                return answer
            if last or not (answer.status_code in (408, 409, 429) or answer.is_server_error):
                raise EmbeddingError(f"{self._url}: {answer.status_code}: {answer.text[:_QUOTED]}")
            time.sleep(_pause(failed, answer.headers.get("Retry-After", "")))
        raise AssertionError("the last try returns or raises")

    def _rows(self, answer: httpx.Response, count: int) -> list[Any]:
        """The vectors in the order of their texts: the protocol numbers them."""
        try:
            rows = sorted(answer.json()["data"], key=lambda row: row["index"])
            vectors = [row["embedding"] for row in rows]
        except (ValueError, KeyError, TypeError) as error:
            raise EmbeddingError(
                f"{self._url}: no answer of the embeddings protocol: {answer.text[:_QUOTED]}"
            ) from error
        if len(vectors) != count:
            raise EmbeddingError(f"{self._url}: {len(vectors)} vectors for {count} texts")
        return vectors


def _pause(failed: int, asked: str = "") -> float:
    """Seconds before the next try: as the server asks, else growing and random, so that workers don't meet again."""
    if asked.isdecimal():
        return min(float(asked), _LONGEST_PAUSE)
    return random.uniform(0.5, 1) * (1 << failed)
