"""Reading and writing the frontmatter of an entry: YAML in which plain text stays text."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import yaml

MAX_FRONTMATTER_BYTES = 64 * 1024
MAX_DEPTH = 16
MAX_NODES = 2_000

# What an unknown key may hold.
type Scalar = str | int | float | bool | None
type Value = Scalar | list[Value] | dict[str, Value]
type Metadata = Mapping[str, Value]

# The keys that the format knows.
KNOWN_KEYS = frozenset(
    [
        "id",
        "created",
        "type",
        "category",
        "source",
        "confidence",
        "tags",
        "supersedes",
        "superseded_by",
        "summary",
    ]
)
# The largest whole number up to which all readers of JSON read every one alike.
MAX_NUMBER = 2**53 - 1
_MAX_NUMBER_LENGTH = 40

# The C parser, where PyYAML was built with it.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})


class FrontmatterError(Exception):
    """The text is no frontmatter that can be used; str(e) names the reason in a few words."""


class _NoYaml(FrontmatterError):
    """What no YAML reader takes."""


@dataclass(frozen=True, slots=True)
class Frontmatter:
    """The values of a mapping, and the keys whose value is a plain scalar that may stand for nothing."""

    values: Mapping[str, Value]
    nulls: frozenset[str]

    def text(self, key: str) -> str:
        """Return a key's text; "" where there is none, or something else than text."""
        value = self.values.get(key, "")
        return value if isinstance(value, str) else ""


def read_frontmatter(text: str) -> Frontmatter:
    """Read the lines between two fences.

    Of the keys that the format knows, plain scalars are the text that stands there: no numbers, dates, booleans or
    nulls; of others they are what JSON has a word for, and text otherwise. The last of several equal keys counts.
    Where no YAML reader would take it, each one-line value that is at fault is the text that stands there (`a: b`,
    `@home`, `"half`). Raises `FrontmatterError` for what is no YAML mapping, for aliases, anchors and tags, for values
    that no database keeps as text, and for more than 64 KiB, 16 levels or 2,000 nodes. The time it takes is bounded by
    those limits.
    """
    if len(text) > MAX_FRONTMATTER_BYTES or len(text.encode()) > MAX_FRONTMATTER_BYTES:
        raise FrontmatterError("yaml: longer than 64 KiB")
    if usual := _read_usual(text):
        return usual
    try:
        return _read_yaml(text)
    except _NoYaml:
        mended = _with_faults_quoted(text)
        if mended is None:
            raise
        return _read_yaml(mended)


def _frontmatter(values: dict[str, Value], nulls: dict[str, bool]) -> Frontmatter:
    return Frontmatter(values, frozenset(key for key, is_null in nulls.items() if is_null))


# --- the usual shape ---------------------------------------------------------------------------------------------
# Nearly every entry consists of one-line values that no YAML rule touches. Reading those directly is several times
# faster than the YAML parser, which decides about everything else.

_USUAL_TEXT = r"[^\W_](?:[\w ./+()'&;@%*!?=,-]|:(?=[^\W_]))*"
_USUAL_QUOTED = r"[^\"\\\x00-\x1f\x7f-\xa0\u2028\u2029\ufeff\ufffe\uffff]*"
_USUAL_TAG = r"[^\W_][\w./+-]*(?: [\w./+-]+)*"
_USUAL_LINE = re.compile(
    r"(id|created|type|category|source|confidence|summary|supersedes|superseded_by): "
    rf"(?:({_USUAL_TEXT})|\"({_USUAL_QUOTED})\")\n"
    rf"|tags: \[((?:{_USUAL_TAG}(?:, {_USUAL_TAG})*)?)\]\n"
)


def _read_usual(text: str) -> Frontmatter | None:
    values: dict[str, Value] = {}
    nulls: dict[str, bool] = {}
    position = 0
    while position < len(text):
        match = _USUAL_LINE.match(text, position)
        if match is None:
            return None
        key, plain, quoted, tags = match[1], match[2], match[3], match[4]
        if key is None:
            values["tags"] = list(tags.split(", ")) if tags else []
        elif plain is None:
            values[key], nulls[key] = quoted, False
        else:
            values[key] = plain = plain.rstrip(" ")
            nulls[key] = plain in _NULLS
        position = match.end()
    return _frontmatter(values, nulls) if values else None


# --- any shape ---------------------------------------------------------------------------------------------------


class _Parser(Protocol):
    def get_event(self) -> yaml.Event: ...
    def dispose(self) -> None: ...


def _read_yaml(text: str) -> Frontmatter:
    try:
        parser: _Parser = _LOADER(text)
        try:
            return _EventReader(parser).document()
        finally:
            parser.dispose()
    except yaml.YAMLError as error:
        raise _NoYaml(f"yaml: {type(error).__name__}") from None


_ONE_LINE = re.compile(r"([^\s:#\[\]{},*>|`%\"'&!?@-][^:\n]*):[ \t]+([^ \t\n][^\n]*)")
_CONTINUES = re.compile(r"[ \t]+\S|-(?:[ \t]|\Z)")


def _with_faults_quoted(text: str) -> str | None:
    """Frontmatter with quotes around each one-line value that YAML doesn't take; None where that is not the fault."""
    lines = text.split("\n")
    if len(lines) > MAX_NODES:
        return None
    quoted: list[str] = []
    goes_on = False
    for line in reversed(lines):
        quoted.append(line if goes_on else _with_fault_quoted(line))
        if line.strip():
            goes_on = _CONTINUES.match(line) is not None
    quoted.reverse()
    return None if quoted == lines else "\n".join(quoted)


def _with_fault_quoted(line: str) -> str:
    match = _ONE_LINE.fullmatch(line)
    if match is None or _USUAL_LINE.fullmatch(line + "\n"):
        return line
    # Where a list or a reference may have been meant, what it says would be a guess.
    if match[2].startswith(("[", "{", "*")) and match[1].rstrip(" \t") not in KNOWN_KEYS - {"tags"}:
        return line
    try:
        _read_yaml(line + "\n")
    except _NoYaml:
        return f"{match[1]}: {_quoted(match[2].rstrip(' \t'))}"
    except FrontmatterError:
        pass
    return line


def key_lines(text: str) -> list[tuple[str, str]]:
    """Cut the lines between two fences by the keys that they are about; nothing where two share a line.

    Comments and blank lines belong to the key below them, those below all keys to the last one. Lines that are read
    only as `read_frontmatter` mends them are given as they stand.
    """
    try:
        starts = _key_starts(text)
    except yaml.YAMLError:
        try:
            # Mending changes no line's number.
            starts = _key_starts(_with_faults_quoted(text) or text)
        except yaml.YAMLError:
            return []
    lines = re.findall(r"[^\n]*\n|[^\n]+\Z", text)
    firsts = []
    for _, first in starts:
        while first > 0 and lines[first - 1].startswith("#"):
            first -= 1
        firsts.append(first)
    if not starts or len({line for _, line in starts}) < len(starts):
        return []
    ends = [*firsts[1:], len(lines)]
    return [
        (key, "".join(lines[start:end])) for (key, _), start, end in zip(starts, firsts, ends, strict=True)
    ]


def _key_starts(text: str) -> list[tuple[str, int]]:
    """The keys and the lines at which they begin: those that "\n" ends, where YAML knows more ends of a line."""
    parser: _Parser = _LOADER(text)
    starts: list[tuple[str, int]] = []
    ends = [found.start() for found in re.finditer("\n", text)]
    try:
        depth, is_key = 0, True
        while not isinstance(event := parser.get_event(), yaml.StreamEndEvent):
            if depth == 1 and isinstance(event, yaml.ScalarEvent) and is_key and event.start_mark:
                starts.append((event.value, bisect_left(ends, event.start_mark.index)))
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            if depth == 1 and isinstance(event, yaml.ScalarEvent | yaml.CollectionEndEvent):
                is_key = not is_key
    finally:
        parser.dispose()
    return starts


class _EventReader:
    """Builds values from parser events, one at a time, so that the limits stop the parser where they are met."""

    def __init__(self, parser: _Parser) -> None:
        self._parser = parser
        self._nodes = 0

    def document(self) -> Frontmatter:
        if not isinstance(self._next(), yaml.StreamStartEvent) or not isinstance(
            self._next(), yaml.DocumentStartEvent
        ):
            raise FrontmatterError("yaml: no mapping")
        root = self._next()
        if not isinstance(root, yaml.MappingStartEvent):
            raise FrontmatterError("yaml: no mapping")
        self._check(root)
        values: dict[str, Value] = {}
        nulls: dict[str, bool] = {}
        for key, event in self._pairs():
            plain = str if key in KNOWN_KEYS else meaning_of
            values[key] = self._value(event, plain, depth=1)
            nulls[key] = isinstance(event, yaml.ScalarEvent) and event.implicit[0] and event.value in _NULLS
        self._next()
        if not isinstance(self._next(), yaml.StreamEndEvent):
            raise FrontmatterError("yaml: more than one document")
        return _frontmatter(values, nulls)

    def _pairs(self) -> Iterator[tuple[str, yaml.Event]]:
        """The keys of the mapping just entered, each with the first event of its value."""
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                raise FrontmatterError("yaml: a key that is no text")
            yield self._scalar(event), self._next()

    def _value(self, event: yaml.Event, plain: Callable[[str], Scalar], *, depth: int) -> Value:
        if isinstance(event, yaml.ScalarEvent):
            text = self._scalar(event)
            return plain(text) if event.implicit[0] else text
        if depth >= MAX_DEPTH:
            raise FrontmatterError(f"yaml: more than {MAX_DEPTH} levels")
        self._check(event)
        if isinstance(event, yaml.MappingStartEvent):
            return {key: self._value(inner, plain, depth=depth + 1) for key, inner in self._pairs()}
        items: list[Value] = []
        while not isinstance(inner := self._next(), yaml.SequenceEndEvent):
            items.append(self._value(inner, plain, depth=depth + 1))
        return items

    def _scalar(self, event: yaml.ScalarEvent) -> str:
        self._check(event)
        value: str = event.value
        if "\0" in value or (not value.isascii() and _has_surrogate(value)):
            raise FrontmatterError("yaml: a NUL or half of a surrogate pair")
        return value

    def _next(self) -> yaml.Event:
        return self._parser.get_event()

    def _check(self, event: yaml.Event) -> None:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise FrontmatterError(f"yaml: more than {MAX_NODES:,} nodes")
        if isinstance(event, yaml.AliasEvent):
            # Of what nothing is: an anchor above it would have been refused.
            raise _NoYaml("yaml: an alias")
        if getattr(event, "anchor", None) is not None:
            raise FrontmatterError("yaml: an anchor")
        if getattr(event, "tag", None) is not None:
            raise FrontmatterError("yaml: a tag")


_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def meaning_of(plain: str) -> Scalar:
    """What a plain scalar of an unknown key stands for; numbers that not every reader reads alike are text."""
    if plain in _NULLS:
        return None
    if plain in _BOOLEANS:
        return _BOOLEANS[plain]
    match = _NUMBER.fullmatch(plain) if len(plain) <= _MAX_NUMBER_LENGTH else None
    if match is None:
        return plain
    number = float(plain) if match[1] or match[2] else int(plain)
    return number if abs(number) <= MAX_NUMBER else plain


def _has_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


# --- writing -----------------------------------------------------------------------------------------------------

_SURELY_PLAIN = re.compile(r"[^\W\d][\w./+-]*(?: [\w./+()&;*!?=,'-]+)*")
_SURELY_PLAIN_TAG = re.compile(r"[^\W\d][\w./+-]*(?: [\w./+-]+)*")
# How no plain scalar begins, and what none holds inside a list. Not left to the parser, which takes seconds for some.
_NEVER_PLAIN = re.compile(r"[\[\]{},#&*!|>'\"%@`]|[?:-](?: |\Z)|\Z")
_NEVER_IN_A_LIST = re.compile(r"[\[\]{},]")
_WORDS_WITH_A_MEANING = frozenset({"yes", "no", "true", "false", "on", "off", "null"})
_TO_ESCAPE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_QUOTED_IN_SUMMARIES = ("[", "{", "*", "&", "!", "%", "@", ">", "|", "'", '"', "`")


def text_line(key: str, value: str) -> str:
    """Write `key: value`, bare where every YAML reader then reads the same text, else in double quotes."""
    bare = f"{key}: {value}"
    if _is_surely_plain(value, _SURELY_PLAIN):
        return bare
    reads_back = not _NEVER_PLAIN.match(value) and _reads_as(bare, key, value)
    return bare if reads_back else f"{key}: {_quoted(value)}"


def summary_line(value: str) -> str:
    """Write a summary: as `text_line` does, but in quotes too where its first sign or a colon asks for them."""
    usual = usual_summary(value)
    if usual == value:
        return text_line("summary", value)
    line = f"summary: {usual}"
    return line if _reads_as(line, "summary", value) else f"summary: {_quoted(value)}"


def usual_summary(value: str) -> str:
    """Write a summary as other writers of the format do, who escape no backslashes: not every YAML reader agrees."""
    if value.startswith(_QUOTED_IN_SUMMARIES) or ": " in value:
        return '"' + value.replace('"', '\\"') + '"'
    return value


def value_line(key: str, value: Value) -> str:
    """Write a key that the format doesn't know, so that every YAML reader reads the same value."""
    # Whoever looks for the end of a key takes the first colon for it.
    name = _unambiguous(key).replace(":", f"\\u{ord(':'):04X}")
    return f"{name}: {_flow(value)}"


def _flow(value: Value) -> str:
    match value:
        case None | bool():
            return {None: "null", True: "true", False: "false"}[value]
        case str():
            return _unambiguous(value)
        case int():
            return str(value)
        case float():
            # Without a point YAML 1.1 takes 1e-07 for text.
            mantissa, e, exponent = repr(value).partition("e")
            return mantissa + ".0" * (bool(e) and "." not in mantissa) + e + exponent
        case list():
            return f"[{', '.join(map(_flow, value))}]"
        case dict():
            return f"{{{', '.join(value_line(name, inner) for name, inner in value.items())}}}"


def _unambiguous(text: str) -> str:
    return text if _is_surely_plain(text, _SURELY_PLAIN_TAG) else _quoted(text)


def tags_line(tags: tuple[str, ...]) -> str:
    """Write a list of tags on one line, quoting those that a YAML reader would read as something else."""
    return f"tags: [{', '.join(_tag(tag) for tag in tags)}]"


def _tag(tag: str) -> str:
    if _is_surely_plain(tag, _SURELY_PLAIN_TAG):
        return tag
    if _NEVER_PLAIN.match(tag) or _NEVER_IN_A_LIST.search(tag):
        return _quoted(tag)
    # Between two others, because a colon or a quote at a tag's end reaches into the next one.
    return tag if _reads_as(f"tags: [a, {tag}, a]", "tags", ["a", tag, "a"]) else _quoted(tag)


def _is_surely_plain(value: str, shape: re.Pattern[str]) -> bool:
    return shape.fullmatch(value) is not None and value.lower() not in _WORDS_WITH_A_MEANING


def _reads_as(line: str, key: str, value: str | list[str]) -> bool:
    """Whether both a plain YAML loader and our own reader read this line as that value."""
    try:
        return bool(yaml.safe_load(line) == {key: value} and read_frontmatter(line).values == {key: value})
    except (yaml.YAMLError, FrontmatterError, ValueError, OverflowError, RecursionError):
        # Beside its own errors PyYAML lets those of int() and datetime() through: 2026-02-30, 0x_.
        return False


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + _TO_ESCAPE.sub(lambda match: f"\\u{ord(match[0]):04X}", escaped) + '"'
