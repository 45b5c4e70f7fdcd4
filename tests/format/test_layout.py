import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsvc.format import (
    CATEGORY_KIND,
    InvalidText,
    InvalidTitle,
    MemoryCategory,
    MemoryKind,
    category_directory,
    entry_path,
    index_path,
    is_memory_file,
    router_of,
    shard_label,
    slugify,
    strict_path,
)

LATE_IN_AUGUST = datetime(2026, 8, 31, 23, 30, tzinfo=timezone(timedelta(hours=-5)))


@pytest.mark.parametrize(
    ("category", "path"),
    [
        ("events", "/memory/episodic_memory/events/2026-09.md"),
        ("feedbacks", "/memory/episodic_memory/feedbacks/2026-09.md"),
        ("errors", "/memory/episodic_memory/errors/2026-09.md"),
        ("facts", "/memory/semantic_memory/facts.md"),
        ("rules", "/memory/semantic_memory/rules.md"),
        ("preferences", "/memory/preferences.md"),
        ("procedure", "/memory/procedural_memory/deploy-prod.md"),
    ],
)
def test_each_category_has_its_file(category: str, path: str) -> None:
    assert entry_path(MemoryCategory(category), when=LATE_IN_AUGUST, title="Deploy: prod!") == path
    assert path.startswith(category_directory(MemoryCategory(category)))


def test_preferences_are_semantic() -> None:
    assert CATEGORY_KIND[MemoryCategory.PREFERENCES] is MemoryKind.SEMANTIC
    assert category_directory(MemoryCategory.PREFERENCES) == "/memory/"


def test_each_kind_has_its_index() -> None:
    assert index_path() == index_path(None) == "/memory/index.md"
    assert index_path(MemoryKind.EPISODIC) == "/memory/episodic_memory/index.md"


def test_shards_are_months_in_utc() -> None:
    assert shard_label(LATE_IN_AUGUST) == "2026-09"
    assert shard_label(datetime(2026, 8, 31, 23, 30)) == "2026-08"  # noqa: DTZ001 - naive means UTC
    assert shard_label(datetime(7, 1, 1, tzinfo=UTC)) == "0007-01"
    assert re.fullmatch(r"\d{4}-\d{2}", shard_label())


def test_an_instant_without_a_date_in_utc_is_refused() -> None:
    with pytest.raises(InvalidText, match="years 1 to 9999"):
        shard_label(datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-5))))


@pytest.mark.parametrize(
    ("title", "slug"),
    [
        ("Deploy: prod!", "deploy-prod"),
        (" deploy_prod ", "deploy-prod"),
        ("C++ 17", "c-17"),
        ("Über Straße", "uber-strasse"),
        ("naïve café", "naive-cafe"),
        ("デプロイ 手順", "デプロイ-手順"),
        ("كيف تنشر", "كيف-تنشر"),
        ("प्रक्रिया", "प्रक्रिया"),
        ("Ёлка", "ёлка"),
        ("ＤＥＰＬＯＹ ２", "deploy-2"),
        ("Deploy 🚀 now", "deploy-now"),
        ("Index", "index-procedure"),
        ("INDEX!", "index-procedure"),
        ("Index of things", "index-of-things"),
    ],
)
def test_slugs_are_readable(title: str, slug: str) -> None:
    assert slugify(title) == slug


@pytest.mark.parametrize("title", ["!!!", "", " ", "🚀", "❤️‍🔥", "---", "\u0301", "\ufe0f"])
def test_a_title_without_a_letter_is_refused(title: str) -> None:
    with pytest.raises(InvalidTitle, match="cannot build a slug from") as refusal:
        slugify(title)
    assert refusal.value.code == "invalid_title"


@pytest.mark.parametrize("title", [None, "", "  "])
def test_a_procedure_requires_a_title(title: str) -> None:
    with pytest.raises(ValueError, match="a procedure entry requires a title"):
        entry_path(MemoryCategory.PROCEDURE, title=title)


def test_a_long_title_has_a_short_slug_of_its_own() -> None:
    long = "word " * 80
    assert len(slugify(long)) <= 200
    assert slugify(long) == slugify(long.upper())
    assert slugify(long + "a") != slugify(long + "b")
    assert slugify("京" * 400).encode().decode() == slugify("京" * 400)
    assert len(slugify("京" * 400).encode()) <= 200


@given(st.text(st.characters(codec="ascii"), max_size=100))
def test_slugs_of_ascii_titles_are_those_of_other_tools(title: str) -> None:
    usual = re.sub("[^a-z0-9]+", "-", title.strip().lower()).strip("-")
    if usual and usual != "index":
        assert slugify(title) == usual


@given(st.text(max_size=300))
def test_every_slug_names_a_memory_file(title: str) -> None:
    try:
        path = entry_path(MemoryCategory.PROCEDURE, title=title)
    except InvalidTitle:
        return
    assert strict_path(path) == path
    assert is_memory_file(path)
    assert router_of(path) is not None
    assert slugify(slugify(title)) == slugify(title)
