"""Bodies of requests: strict JSON, or bytes as they are."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import IO, Any

from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.parsers import BaseParser

from memsvc.api.problems import InvalidJson, InvalidRequest
from memsvc.contract.errors import ErrorCode, Refused

MAX_DEPTH = 32
PIECE_BYTES = 64 * 1024


class StrictJSONParser(BaseParser):
    """One JSON object in UTF-8: no name twice, no NaN or infinity, nothing nested deeper than 32."""

    media_type = "application/json"

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        return parse_object(read_body(stream, parser_context))


class RawParser(BaseParser):
    """Any other type: the bytes of a file."""

    media_type = "*/*"

    def parse(  # type: ignore[override]  # DRF takes anything, the stubs don't
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> bytes:
        return read_body(stream, parser_context)


def read_body(stream: IO[Any], context: Mapping[str, Any] | None) -> bytes:
    sink = BytesIO()
    copy_body(stream, sink, (context or {})["request"].META)
    return sink.getvalue()


def copy_body(stream: IO[Any], sink: IO[bytes], meta: Mapping[str, Any]) -> None:
    """Read a body into a file, and go back to its start."""
    copied = 0
    while piece := stream.read(PIECE_BYTES):
        sink.write(piece)
        copied += len(piece)
    # A client that was cut off in the middle must not leave half a file.
    if copied < declared_length(meta):
        raise InvalidRequest("The body ended before its Content-Length.")
    sink.seek(0)


def declared_length(meta: Mapping[str, Any]) -> int:
    return int(meta.get("CONTENT_LENGTH") or 0)


def require_plain_body(meta: Mapping[str, Any], max_bytes: int) -> None:
    """Refuse compressed bodies (they may be a thousand times what was sent), and those that are too long.

    Chunked ones too: Django takes a request without a length for one without a body, and would store an empty file.
    """
    if meta.get("HTTP_CONTENT_ENCODING", "identity").lower() != "identity":
        raise UnsupportedMediaType(
            "", detail="Compressed bodies are not taken; send it without Content-Encoding."
        )
    if meta.get("HTTP_TRANSFER_ENCODING"):
        raise Refused(code=ErrorCode.LENGTH_REQUIRED)
    if declared_length(meta) > max_bytes:
        raise Refused(
            f"The body is too large: at most {max_bytes:,} bytes are taken here.",
            code=ErrorCode.BODY_TOO_LARGE,
        )


def parse_object(data: bytes) -> dict[str, Any]:
    """The JSON object in `data`; raises InvalidJson."""
    try:
        value = json.loads(
            data.decode("utf-8"), object_pairs_hook=_without_doubles, parse_constant=_no_constant
        )
    except RecursionError:
        raise InvalidJson("The JSON is nested too deeply.") from None
    except ValueError as error:
        raise InvalidJson(f"The body is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise InvalidJson("The body must be a JSON object.")
    _require_shallow(value)
    return value


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        double, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ValueError(f"the name {json.dumps(double[:100])} is there twice")
    return found


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON value")


def _require_shallow(value: Any) -> None:
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        level = [inner for outer in level for inner in _children(outer)]
        if not level:
            return
    raise InvalidJson("The JSON is nested too deeply.")


def _children(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value
