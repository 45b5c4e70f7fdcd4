"""Random entries and random files that look like memory files."""

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import strategies as st

from memsvc.format import Confidence, MemoryCategory, MemoryEntry

from .samples import OWN

characters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
tricky_words = st.sampled_from(
    [
        *[
            "a",
            "b",
            "é",
            "京都",
            "\U0001f600",
            "yes",
            "no",
            "null",
            "~",
            "007",
            "1.10",
            "12:30",
            "0x_",
            "2026-02-30",
        ],
        *[
            "=",
            "<<",
            ":",
            "#",
            "-",
            "?",
            "!",
            "&",
            "*",
            "@",
            "%",
            "`",
            "|",
            ">",
            "'",
            '"',
            "[",
            "]",
            "{",
            "}",
            ",",
        ],
        *["\\", "\\n", "x:", ":y", "--", "---", "***", "```", "id:", "<!--", "-->"],
        *["\u2028", "\x85", "\x0c", "\x07", "\ufeff", "\uffff"],
    ]
)
one_line_texts = st.one_of(
    st.text(characters, max_size=30),
    st.lists(tricky_words, max_size=6).map(" ".join),
    st.lists(tricky_words, max_size=4).map("".join),
)
body_lines = st.sampled_from(
    [
        *[
            "",
            "  ",
            "text",
            "    code",
            "two blanks  ",
            "---",
            " ---\t",
            "---\r",
            "***",
            "id: x",
            "key: value",
        ],
        *["- item", "# Heading", "<!-- -->", "```", "\r", "a\rb", "a\u2028---\u2028b", "\x0c"],
    ]
)
bodies = st.one_of(
    st.text(characters, max_size=60),
    st.lists(body_lines, max_size=8).map("\n".join),
    st.lists(body_lines, max_size=8).map("\r\n".join),
)
zones = st.one_of(
    st.just(UTC),
    st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes))),
)
instants = st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=zones)  # noqa: DTZ001 - zones are drawn
ids = st.one_of(
    st.from_regex(r"mem_20\d\d-[01]\d-[0-3]\d_[0-9a-f]{6,16}", fullmatch=True),
    one_line_texts.filter(lambda text: bool(text.strip())),
)

entries = st.builds(
    MemoryEntry,
    entry_id=ids,
    created=instants,
    category=st.sampled_from(MemoryCategory),
    body=bodies,
    summary=one_line_texts,
    source=one_line_texts,
    confidence=st.sampled_from(Confidence),
    tags=st.lists(one_line_texts, max_size=4).map(tuple),
    supersedes=st.none() | ids,
    superseded_by=st.none() | ids,
)

file_lines = st.sampled_from(
    [
        *[
            b"",
            b"",
            b"---",
            b"---",
            b"--- ",
            b"\t---",
            b"--",
            b"----",
            b"text",
            b"# Heading",
            b"- item",
            b"  more",
        ],
        *[
            b"a: b",
            b"id: x",
            b"id: mem_1",
            b"id:",
            b"created: 2026-01-01",
            b"created: soon",
            b"category: facts",
        ],
        *[
            b"category: faqs",
            b"superseded_by: y",
            b"superseded_by:",
            b"supersedes: z",
            b"summary: s",
            b"tags: [a]",
        ],
        *[b"tags: [#x]", b"<!-- -->", b"```", b"| a | b | c | d |", b"\xff", b"\x00", b"\r", b"\xef\xbb\xbf"],
        b"\xe2\x80\xa8",
    ]
)
line_ends = st.sampled_from([b"\n", b"\n", b"\n", b"\r\n", b"\r"])
line_files = st.lists(st.tuples(file_lines, line_ends), max_size=40).map(
    lambda lines: b"".join(line + end for line, end in lines)
)
_entry_heads = st.sampled_from(
    [
        b"---\nid: x\ncreated: 2026-01-01\ncategory: facts\n---\n",
        b"---\r\nid: y\r\ncategory: facts\r\n---\r\n",
    ]
)
entry_files = st.lists(st.one_of(_entry_heads, line_files), max_size=6).map(b"\n".join)
real_files = st.sampled_from([path.read_bytes() for path in sorted(OWN.rglob("*.md"))])


@st.composite
def mutated_files(draw: st.DrawFn) -> bytes:
    """A file of a sample tree with a few of its bytes cut out, doubled or replaced."""
    data = draw(real_files)
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 40)))
        middle = draw(
            st.sampled_from(
                [b"", data[start:end] * 2, b"\n", b"\n\n", b"---\n", b"\r\n", b"\xff", b"\x00", b"x"]
            )
        )
        data = data[:start] + middle + data[end:]
    return data


files = st.one_of(
    st.binary(max_size=80),
    line_files,
    entry_files,
    st.tuples(st.just(b"\xef\xbb\xbf"), line_files).map(b"".join),
    mutated_files(),
)
