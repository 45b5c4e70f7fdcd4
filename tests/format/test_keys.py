import re
from string import ascii_letters, digits

from hypothesis import given
from hypothesis import strategies as st

from memsvc.format.keys import ALPHABET, key_of, looks_like_key, places_of_keys, prefix_in_key

PREFIX, SECRET = "a1B2c3D4", "x7Y8z9" * 7 + "w"
KEY = key_of(PREFIX, SECRET)


def test_a_key_has_a_public_part_a_secret_and_a_checksum() -> None:
    assert sorted(ALPHABET) == sorted(digits + ascii_letters)
    assert re.fullmatch(rf"msk_{PREFIX}_{SECRET}[0-9A-Za-z]{{6}}", KEY)
    assert prefix_in_key(KEY) == PREFIX


def test_the_checksum_stays_what_it_is() -> None:
    # Keys that were handed out hold it.
    assert f"msk_{PREFIX}_{SECRET}1CF7E2" == KEY


def test_a_key_without_a_checksum_has_the_form_of_old() -> None:
    assert prefix_in_key(f"msk_{PREFIX}_{SECRET}") == PREFIX


@given(st.integers(4, len(KEY) - 1), st.sampled_from(ALPHABET))
def test_one_wrong_character_is_seen(at: int, character: str) -> None:
    wrong = KEY[:at] + character + KEY[at + 1 :]

    assert prefix_in_key(wrong) == (PREFIX if wrong == KEY else None)


@given(st.integers(4, len(KEY) - 1))
def test_a_character_too_few_or_too_many_is_seen(at: int) -> None:
    assert prefix_in_key(KEY[:at] + KEY[at + 1 :]) is None
    assert prefix_in_key(KEY[:at] + "a" + KEY[at:]) is None


def test_keys_are_found_in_a_text() -> None:
    raw = f"Ask with {KEY}, not {KEY}x or {KEY[:-1]} or msk_{PREFIX}_{SECRET}.\n»{KEY}«".encode()

    assert [*places_of_keys(raw)] == [9, raw.rindex(KEY.encode())]
    assert [*places_of_keys(b"nothing here")] == []


def test_what_may_be_a_part_of_a_key_looks_like_one() -> None:
    assert all(map(looks_like_key, (KEY, KEY[:20], KEY.upper(), f"trace-{KEY}")))
    assert not looks_like_key("trace-0123_msk")
