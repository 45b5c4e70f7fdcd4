"""Files as agents, editors and sync tools leave them: all of it has to come back byte for byte."""

from hypothesis import strategies as st

from tests.tree.support import FACTS, PROCEDURAL_INDEX, ROOT_INDEX, RULES, SEMANTIC_INDEX, entry_text

IDS = ["mem_2026-01-01_aaaaaa", "mem_2026-01-02_bbbbbb", "mem_2026-01-03_cccccc"]

# Few, so that one operation meets what another left.
PATHS = [
    FACTS,
    RULES,
    SEMANTIC_INDEX,
    PROCEDURAL_INDEX,
    ROOT_INDEX,
    "/memory/preferences.md",
    "/memory/episodic_memory/events/2026-01.md",
    "/memory/procedural_memory/deploy.md",
    "/memory/procedural_memory/deep/er.md",
    "/memory/semantic_memory/a  b | c\\.md",
    "/memory/semantic_memory/Kyōto.md",
    "/memory/semantic_memory/.trash/facts.md",
    "/memory/notes.txt",
    "/memory/notes.md",
    "/memory/notes.md/below.md",
    "/memory/index.md.bak",
    "/a",
    "/a/b",
    "/a/b.md",
    "/a.md",
]
FOLDERS = [
    "/memory/semantic_memory",
    "/memory/procedural_memory",
    "/memory",
    "/a",
    "/memory/notes.md",
    "/gone",
    "/b",
]

_entries = st.builds(
    entry_text,
    st.sampled_from(IDS),
    st.sampled_from(
        [
            "A body.",
            "",
            "Title\n---",
            "two\n\n***\n\nparts",
            "    code",
            "é\u2028ü\x0b\x85",
            "| a | b | c | d |",
        ]
    ),
    category=st.sampled_from(["facts", "facts", "rules", "events"]),
    more=st.sampled_from(
        [
            "",
            "tags: [a, b]\n",
            "superseded_by:\n",
            "superseded_by: mem_x\n",
            "summary: s\nother: key\n",
            "# a comment\n",
        ]
    ),
).map(str.encode)
_texts = st.sampled_from(
    [
        b"text\n",
        b"# Heading\n",
        b"no line end",
        b"\n",
        b"\n\n  \n",
        b"---\n",
        b"Setext\n---\n",
        b"\n---\nid: mem_open\ncreated: 2026-01-01\ncategory: facts\n",
        b"---\nid: mem_broken\ncreated: soon\ncategory: facts\n---\n\nopaque\n",
        b"---\nid: [\n---\nbad yaml\n",
        b"---\ntitle: a note\naliases: [n]\n---\n",
        b"lone \r carriage\rreturns\r",
        b"\xef\xbb\xbf",
        b"NUL \x00 here\n",
        b"\xff\xfe not UTF-8\n",
        "U+2028 \u2028 and \x85 and \x0c\n".encode(),
        b"<!-- -->\n",
        b"```\n---\nid: mem_code\n---\n```\n",
    ]
)
_table = b"| File | Description | Tags | Updated |\n| --- | --- | --- | --- |\n"
_tables = st.sampled_from(
    [
        _table,
        _table + b"| facts.md | Facts | facts | |\n| rules.md | Rules | rules | |\n",
        _table + b"| notes.md | mine | a, b | 2026-01-01 |\n| deploy.md |x|| |\n| a.md | b | c |\n",
        _table
        + b"| rules.md | by hand | | |\n|facts.md|tight|t|2025-01-01|\n| facts.md | twice | | |\n\ntext below\n",
        _table + b"| facts.md | without a line end | | |",
        _table.rstrip(b"\n"),
        b"| File | Description |\n| --- | --- |\n| facts.md | two columns |\n",
    ]
)
_large = st.builds(
    lambda lines, at, middle: (
        b"line of a long note\n" * at + middle + b"line of a long note\n" * (lines - at)
    ),
    st.just(7_000),
    st.integers(0, 7_000),
    st.one_of(_texts, _entries),
)
_parts = st.one_of(_texts, _entries, _entries, _tables)


def _in_crlf(data: bytes) -> bytes:
    return data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


files = st.one_of(
    st.lists(_parts, max_size=5).map(b"".join),
    st.lists(_parts, max_size=5).map(b"\n".join),
    st.lists(_parts, max_size=4).map(b"\n".join).map(_in_crlf),
    st.binary(max_size=20),
    _large,
)
additions = st.one_of(_texts, _entries, st.tuples(st.just(b"\n"), _entries).map(b"".join), _tables)
