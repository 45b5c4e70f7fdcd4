"""Reads of a tree, now or as of a revision. Each sees one consistent moment and gives the connection back.

`revision=None` means now. Hidden blocks show in none of them, and what lies outside the access reads as missing.
Raises `TreeError` and `FormatError`.
"""

from memsvc.tree.history.blame import blame
from memsvc.tree.history.changelog import Step, changelog
from memsvc.tree.history.diffs import diff
from memsvc.tree.history.entry_history import entry_history
from memsvc.tree.history.memory_versions import VersionFilter, list_versions, read_version
from memsvc.tree.history.revisions import RevisionFilter, get_revision, list_revisions, revision_at
from memsvc.tree.reads.entries import EntryFilter, get_entry, list_entries, recent_episodes, search_entries
from memsvc.tree.reads.export_source import ExportSource, export_source
from memsvc.tree.reads.files import list_files, list_folder, read_file, read_index, read_lines, stat
from memsvc.tree.reads.matches import glob, grep
from memsvc.tree.reads.memories import list_memories, read_memory
from memsvc.tree.reads.rows import misstatements
from memsvc.tree.reads.substring import search_substring

__all__ = [
    "EntryFilter",
    "ExportSource",
    "RevisionFilter",
    "Step",
    "VersionFilter",
    "blame",
    "changelog",
    "diff",
    "entry_history",
    "export_source",
    "get_entry",
    "get_revision",
    "glob",
    "grep",
    "list_entries",
    "list_files",
    "list_folder",
    "list_memories",
    "list_revisions",
    "list_versions",
    "misstatements",
    "read_file",
    "read_index",
    "read_lines",
    "read_memory",
    "read_version",
    "recent_episodes",
    "revision_at",
    "search_entries",
    "search_substring",
    "stat",
]
