"""Listing a folder of 1,000 files, against deepagents' backend on disk."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from deepagents.backends import FilesystemBackend

from benchmarks.measure import Figure, cpu_of_call, ratio_of
from benchmarks.samples import our_tree
from benchmarks.server import client_of, server_pids
from memsvc.tree import reads, services

_FILES = [(f"/memory/notes/note-{n:04d}.md", f"# Note {n}\n".encode()) for n in range(1_000)]


def run() -> Iterator[Figure]:
    access = our_tree(0)
    services.upload_files(access, _FILES)
    client = client_of(access.tree)
    with tempfile.TemporaryDirectory() as folder:
        for path, data in _FILES:
            target = Path(folder + path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        disk = FilesystemBackend(root_dir=folder, virtual_mode=True)
        peer = cpu_of_call(lambda i: disk.ls("/memory/notes"), times=5)
        ours = cpu_of_call(lambda i: reads.list_folder(access, "/memory/notes"), times=10)
        yield ratio_of("list a folder of 1,000 files", ours, peer)
        ours = cpu_of_call(lambda i: client.list_folder("/memory/notes"), times=10, servers=server_pids())
        yield ratio_of("list a folder of 1,000 files over HTTP", ours, peer)
