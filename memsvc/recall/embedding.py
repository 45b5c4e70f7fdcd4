"""Text to vectors: what a model must be able to do, and the one that the settings name.

`MEMSVC_EMBEDDER` is `minilm` (local, the default), `none`, `openai` (any endpoint that speaks that protocol) or the
dotted path of a LangChain `Embeddings`, an instance or something that makes one when it is called.
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

from django.conf import settings

# A process that embeds nothing does without numpy and onnxruntime, and their 200 MB.
if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# Evaluated only when somebody asks what they stand for.
type Vector = npt.NDArray[np.float32]
type Vectors = npt.NDArray[np.float32]

MINILM, NONE, OPENAI = "minilm", "none", "openai"


class EmbeddingError(Exception):
    """The model can't be loaded, can't be reached, or answers with something else than vectors."""


class Embedder(Protocol):
    """A model. Its `name` is stored beside every vector: vectors of two names are never compared.

    Vectors are float32 and of unit length, so that their inner product is the cosine. `embed` gives one row per text;
    threads may call it at the same time. Raises `EmbeddingError`.
    """

    @property
    def name(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    def embed(self, texts: Sequence[str]) -> Vectors: ...

    def embed_query(self, text: str) -> Vector:
        """The vector of a question, which some models make in another way than that of a text."""
        ...


_lock = Lock()
_loaded: tuple[tuple[str, ...], Embedder] | None = None


def embedder() -> Embedder | None:
    """The model of the settings, loaded at its first use in this process; None where search is lexical only."""
    global _loaded
    if settings.EMBEDDER == NONE:
        return None
    wanted = (settings.EMBEDDER, settings.EMBEDDING_URL, settings.EMBEDDING_KEY, settings.EMBEDDING_MODEL)
    with _lock:
        if _loaded is None or _loaded[0] != wanted:
            _loaded = (wanted, _load(settings.EMBEDDER))
        return _loaded[1]


def _load(name: str) -> Embedder:
    if name == MINILM:
        from memsvc.recall.minilm import MiniLM

        return MiniLM()
    if name == OPENAI:
        from memsvc.recall.endpoints import Endpoint

        return Endpoint(settings.EMBEDDING_URL, settings.EMBEDDING_KEY, settings.EMBEDDING_MODEL)
    return ExternalEmbedder(name, _made(name))


def _made(path: str) -> Any:
    module, _, attribute = path.rpartition(".")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise EmbeddingError(f"MEMSVC_EMBEDDER: there is no {path}: {error}") from error
    makes_one = isinstance(found, type) or not hasattr(found, "embed_documents")
    made = found() if makes_one and callable(found) else found
    if not (hasattr(made, "embed_documents") and hasattr(made, "embed_query")):
        raise EmbeddingError(f"MEMSVC_EMBEDDER: {path} is no LangChain Embeddings, and makes none")
    return made


class ExternalEmbedder:
    """A LangChain `Embeddings`. Its name is its path and, where it tells one, its model's name."""

    def __init__(self, path: str, embeddings: Any) -> None:
        self._embeddings = embeddings
        told = (getattr(embeddings, attribute, None) for attribute in ("model", "model_name"))
        self.name = "/".join([path, *(name for name in told if isinstance(name, str))])
        self._dimensions: int | None = None

    @property
    def dimensions(self) -> int:
        if self._dimensions is None:
            self._dimensions = len(self.embed_query("dimensions"))
        return self._dimensions

    def embed(self, texts: Sequence[str]) -> Vectors:
        return checked(self._asked(self._embeddings.embed_documents, list(texts)), len(texts))

    def embed_query(self, text: str) -> Vector:
        vector: Vector = checked([self._asked(self._embeddings.embed_query, text)], 1)[0]
        return vector

    def _asked[T](self, embed: Callable[[T], Any], what: T) -> Any:
        try:
            return embed(what)
        except Exception as error:
            # Each provider has errors of its own.
            raise EmbeddingError(f"{self.name}: {type(error).__name__}: {error}") from error


def checked(rows: Any, count: int) -> Vectors:
    """What a model answered to `count` texts, as vectors. Raises `EmbeddingError` when it can't be."""
    import numpy as np

    try:
        vectors = np.asarray(rows, np.float32)
    except (TypeError, ValueError) as error:
        raise EmbeddingError("the model answered with something else than rows of numbers") from error
    if vectors.ndim != 2 or len(vectors) != count or not vectors.shape[1]:
        raise EmbeddingError(f"the model answered with {vectors.shape} numbers to {count} texts")
    return of_unit_length(vectors)


def of_unit_length(vectors: Any) -> Vectors:
    import numpy as np

    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not (np.isfinite(lengths).all() and lengths.all()):
        raise EmbeddingError("the model answered with a vector that has no direction")
    unit: Vectors = (vectors / lengths).astype(np.float32)
    return unit
