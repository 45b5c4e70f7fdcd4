"""What a deployment may name in MEMSVC_EMBEDDER."""

from langchain_core.embeddings import Embeddings


class Letters(Embeddings):
    """Texts by how often they have each letter; questions are marked in a number of their own."""

    model = "letters-1"

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[*(1.0 + text.count(letter) for letter in "abcdefg"), 0.0] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return [*self.embed_documents([text])[0][:-1], 1]


class Broken(Letters):
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        raise ConnectionError("nobody there")

    def embed_query(self, text: str) -> list[float]:
        return [0.0] * 8


instance = Letters()


def made() -> Embeddings:
    return Letters()


def broken() -> Embeddings:
    return Broken()


not_a_model = "letters"
