from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from unittest.mock import patch
from uuid import RFC_4122

from memsvc.database.ids import uuid7


def test_an_id_is_a_uuid_of_version_7() -> None:
    made = uuid7()

    assert (made.version, made.variant) == (7, RFC_4122)


def test_each_id_sorts_after_the_one_before() -> None:
    made = [uuid7() for _ in range(10_000)]

    assert all(earlier < later for earlier, later in pairwise(made))


def test_ids_keep_their_order_when_the_clock_steps_back() -> None:
    before = uuid7()
    with patch("memsvc.database.ids.time.time_ns", return_value=0):
        after = [uuid7() for _ in range(100)]

    assert before < after[0]
    assert after == sorted(after)


def test_threads_never_get_the_same_id() -> None:
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: uuid7(), range(20_000)))

    assert len(set(made)) == len(made)
