import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsvc.recall.highlights import MOST_HIGHLIGHTS, Highlighter


def marked(body: str, query: str) -> list[str]:
    return [piece.text[start:end] for piece in Highlighter(query)(body) for start, end in piece.ranges]


@pytest.mark.parametrize(
    ("body", "query", "expected"),
    [
        ("The backups ran at night.", "when does the backup run?", ["backups"]),
        ("Café Noir opens at nine.", "cafe", ["Café"]),
        ("See ADR-016 (accepted).", "what is adr-016", ["ADR-016"]),
        ("外币汇率换算表", "汇率", ["汇率"]),
        ("Nothing of it.", "zebra", []),
        # Letters of another length, before the place and in it.
        ("Straße, ﬃ, İ: das Café in der STRAẞE.", "strasse cafe", ["Straße", "Café", "STRAẞE"]),
        ("In İstanbul and I\u0307stanbul, not İzmir", "istanbul", ["İstanbul", "I\u0307stanbul"]),
        ("İİİ ẞẞ ADR-ẞ16 x", "adr-ss16", ["ADR-ẞ16"]),
        ("cafe\u0301 Noir", "café", ["cafe\u0301"]),
        ("ﾊﾝｶﾞｸ の字, ㍿", "ハンガク 式会", ["ﾊﾝｶﾞｸ", "㍿"]),
        ("نمی\u200cخواهم", "نمیخواهم", ["نمی\u200cخواهم"]),
        (unicodedata.normalize("NFD", "가나 한글"), "한글", [unicodedata.normalize("NFD", "한글")]),
        ("", "zebra", []),
    ],
)
def test_what_answers_the_query_is_marked(body: str, query: str, expected: list[str]) -> None:
    assert marked(body, query) == expected


def test_far_apart_places_are_pieces_of_their_own() -> None:
    body = "kettle " + "filler " * 100 + "kettle " + "filler " * 100 + "kettle " + "filler " * 100 + "kettle"

    pieces = Highlighter("kettle")(body)

    assert len(pieces) == MOST_HIGHLIGHTS
    assert all(len(piece.text) < 200 for piece in pieces)


@given(st.text(max_size=300), st.text(max_size=60))
def test_ranges_lie_within_their_piece_and_do_not_overlap(body: str, query: str) -> None:
    for piece in Highlighter(query)(body):
        assert piece.text in body
        ends = [place for both in piece.ranges for place in both]
        assert ends == sorted(ends)
        assert ends[0] >= 0
        assert ends[-1] <= len(piece.text)
