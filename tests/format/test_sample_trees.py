"""The sample trees, the project's own and those beside the checkout: read, rendered, edited, byte for byte."""

import hashlib
from datetime import UTC, date, datetime

import pytest

from memsvc.format import (
    CATEGORY_KIND,
    SCAFFOLD,
    BlockKind,
    MemoryCategory,
    MemoryEntry,
    appended,
    compose_entry,
    cut,
    cut_file,
    in_utc,
    index_target,
    is_memory_file,
    is_router,
    parse_entries,
    parse_index,
    recovered_entry,
    render_document,
    split_document,
    superseded,
    with_row,
    with_superseded,
)

from .samples import SampleTree, all_trees, own_trees

NEW = MemoryEntry("mem_new", datetime(2026, 12, 1, tzinfo=UTC), MemoryCategory.FACTS, "New.\n\n---\n\nMore.")


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("tree", all_trees("*"))
def test_every_file_is_as_expected_and_is_its_blocks(tree: SampleTree) -> None:
    files = tree.files()
    assert files.keys() == tree.expected["files"].keys()
    for path, data in files.items():
        # Fails where a copy of the tree has touched line ends.
        assert sha256(data) == tree.expected["files"][path]["sha256"], path
        assert b"".join(block.raw for block in cut(data)) == data
        assert b"".join(block.raw for block in cut_file(path, data)) == data


@pytest.mark.parametrize("tree", [*own_trees(), *all_trees("dirty_*")])
def test_segments_are_as_expected(tree: SampleTree) -> None:
    files = tree.files()
    assert {path for path in files if is_memory_file(path)} == tree.memory_files().keys()
    for path, file in tree.memory_files().items():
        position = 0
        found = []
        for block in cut(files[path]):
            kind = "preamble" if block.kind is BlockKind.TEXT else block.kind.value
            segment = {"kind": kind, "start": position, "end": position + len(block.raw)}
            segment |= {"meta_end": position + block.meta_end} if block.meta_end else {}
            segment |= {"reason": block.reason} if block.reason else {}
            found.append((segment, block.entry))
            position += len(block.raw)
        keys = ["kind", "start", "end", "meta_end", "reason"]
        assert [segment for segment, _ in found] == [
            {key: segment[key] for key in keys if key in segment} for segment in file["segments"]
        ], path
        for (_, entry), segment in zip(found, file["segments"], strict=True):
            if entry is not None:
                assert fields_of(entry) == expected_fields(segment["meta"])


def fields_of(entry: MemoryEntry) -> dict[str, object]:
    return {
        "id": entry.entry_id,
        "created": entry.created,
        "category": entry.category.value,
        "source": entry.source,
        "confidence": entry.confidence.value,
        "tags": list(entry.tags),
        "supersedes": entry.supersedes,
        "superseded_by": entry.superseded_by,
        "summary": entry.summary,
    }


def expected_fields(meta: dict[str, object]) -> dict[str, object]:
    """The fields of a segment, whose bytes that are no UTF-8 are written as escapes in the file."""
    summary = str(meta.get("summary", "")).encode(errors="surrogateescape").decode(errors="replace")
    return {
        "id": meta["id"],
        "created": datetime.fromisoformat(str(meta["created"])),
        "category": meta["category"],
        "source": meta.get("source", "agent"),
        "confidence": str(meta.get("confidence", "medium")).lower(),
        "tags": meta.get("tags", []),
        "supersedes": meta.get("supersedes"),
        "superseded_by": meta.get("superseded_by"),
        "summary": summary,
    }


@pytest.mark.parametrize("tree", all_trees("clean_*"))
def test_clean_entries_preambles_and_indexes_are_read(tree: SampleTree) -> None:
    found = []
    for path, data in tree.files().items():
        text = data.decode()
        if is_memory_file(path):
            preamble, entries = split_document(text)
            assert preamble == tree.expected["preambles"].get(path, "")
            found += [
                fields_of(entry) | {"path": path, "body": entry.body, "kind": entry.kind} for entry in entries
            ]
        elif is_router(path):
            preamble, rows = parse_index(text)
            expected = tree.expected["indexes"][path]
            assert preamble == expected["preamble"]
            assert {
                row.path: {"description": row.description, "tags": list(row.tags), "updated": row.updated}
                for row in rows.values()
            } == expected["rows"]
    expected = [
        entry | {"created": datetime.fromisoformat(entry["created"])} for entry in tree.expected["entries"]
    ]
    assert found == expected


@pytest.mark.parametrize("tree", [*own_trees()[:1], *all_trees("clean_*")])
def test_clean_files_are_what_rendering_and_appending_gives(tree: SampleTree) -> None:
    for path, data in tree.files().items():
        if is_memory_file(path):
            preamble, entries = split_document(data.decode())
            assert render_document(preamble, entries).encode() == data
            built = SCAFFOLD.get(path, "").encode()
            for entry in entries:
                built = appended(built, compose_entry(entry))
            assert built == data


@pytest.mark.parametrize("tree", [*own_trees()[:1], *all_trees("clean_*")])
def test_a_clean_tree_written_entry_by_entry_is_the_tree(tree: SampleTree) -> None:
    """One difference from the tool that wrote the trees: a back-dated entry doesn't set a row's date back."""
    originals = tree.files()
    files = {path: text.encode() for path, text in SCAFFOLD.items()}
    newest: dict[tuple[str, str], date] = {}
    for path, data in originals.items():
        for original in parse_entries(data.decode()) if is_memory_file(path) else []:
            files[path] = appended(files.get(path, b""), compose_entry(without_successor(original)))
            index, row = index_target(original.category, path)
            when = in_utc(original.created).date()
            newest[index, row] = max(when, newest.get((index, row), when))
            files[index] = with_row(
                files[index], path=row, description=original.summary, tags=original.tags, when=when
            )
    for data in originals.values():
        for entry in parse_entries(data.decode()):
            if entry.superseded_by:
                place = next(path for path in files if f"id: {entry.entry_id}\n".encode() in files[path])
                files[place] = with_superseded(files[place], entry.entry_id, entry.superseded_by)
    assert files.keys() == originals.keys()
    for path, data in originals.items():
        if is_memory_file(path):
            assert files[path] == data
        else:
            rows = parse_index(data.decode())[1]
            assert without_dates(files[path]) == without_dates(data)
            for row, read in parse_index(files[path].decode())[1].items():
                assert read.updated == (
                    newest[path, row].isoformat() if (path, row) in newest else rows[row].updated
                )


def without_successor(entry: MemoryEntry) -> MemoryEntry:
    return MemoryEntry(
        entry.entry_id,
        entry.created,
        entry.category,
        entry.body,
        entry.summary,
        entry.source,
        entry.confidence,
        entry.tags,
        entry.supersedes,
    )


def without_dates(index: bytes) -> list[bytes]:
    return [line.rsplit(b"|", 2)[0] for line in index.split(b"\n")]


@pytest.mark.parametrize("tree", all_trees("dirty_*"))
def test_an_edit_changes_only_the_bytes_it_must(tree: SampleTree) -> None:
    files = tree.files()
    for edit in tree.expected["edits"]:
        data = files[edit["path"]]
        changed = with_superseded(data, edit["id"], "mem_new")
        line_end = b"\r\n" if len(changed) - len(data) == len("superseded_by: mem_new\r\n") else b"\n"
        assert changed.count(b"superseded_by: mem_new" + line_end) == 1
        assert changed.replace(b"superseded_by: mem_new" + line_end, b"", 1) == data
        assert sha256(changed[: edit["kept_before_bytes"]]) == edit["kept_before_sha256"]
        after = edit["entry_meta_end"] + len(changed) - len(data)
        assert sha256(changed[after : after + edit["kept_after_bytes"]]) == edit["kept_body_sha256"]

        grown = appended(changed, compose_entry(NEW))
        assert grown.startswith(changed)
        *kept, new = cut_file(edit["path"], grown)
        assert new.entry == NEW
        assert [block.entry for block in kept] == [block.entry for block in cut_file(edit["path"], changed)]


@pytest.mark.parametrize("tree", all_trees("*"))
def test_every_active_entry_can_be_superseded_and_every_file_takes_another(tree: SampleTree) -> None:
    for path in tree.memory_files() or [path for path in tree.files() if is_memory_file(path)]:
        data = tree.files()[path]
        blocks = cut_file(path, data)
        for block in blocks:
            if block.entry is not None and block.entry.is_active:
                changed = superseded(block.raw, "mem_new")
                [read] = [inner.entry for inner in cut_file(path, changed) if inner.entry]
                assert read == block.entry.replaced_by("mem_new")
        found = [block.entry for block in cut_file(path, appended(data, compose_entry(NEW))) if block.entry]
        assert found == [*(block.entry for block in blocks if block.entry), NEW]


@pytest.mark.parametrize("tree", all_trees("quirks_*"))
def test_what_the_other_tool_lost_can_be_recovered(tree: SampleTree) -> None:
    blocks = {}
    for path, data in tree.files().items():
        if is_memory_file(path):
            for block in cut(data):
                if block.meta_end:
                    blocks[block.raw.split(b"\n")[1].decode()] = block
    for case in tree.expected["peer_misreads"]:
        block = blocks[f"id: {case['id']}"]
        entry = recovered_entry(block.raw) or block.entry
        assert entry is not None
        written = case.get("written") or {
            field: change["written"] for field, change in case["changed"].items()
        }
        for field in written.keys() & {"summary", "source"}:
            assert getattr(entry, field) == written[field]
        if "tags" in written:
            assert list(entry.tags) == written["tags"]
        if "body" in written:
            # That tool had stripped the body's ends before it wrote it.
            assert entry.body.strip() == written["body"].strip()


def test_every_category_is_in_the_projects_own_trees() -> None:
    [allotment] = [param.values[0] for param in own_trees() if param.id == "allotment"]
    found = {
        entry.category for path, data in allotment.files().items() for entry in parse_entries(data.decode())
    }
    assert found == CATEGORY_KIND.keys()
