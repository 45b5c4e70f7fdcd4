"""What a start without configuration needs: secrets made once, and the embedded PostgreSQL."""

import os
import secrets
from pathlib import Path

from memsvc import embedded

LOCAL = "local"
PRODUCTION = "production"
SECRETS = ("MEMSVC_SECRET_KEY", "MEMSVC_KEY_PEPPER")


def mode() -> str:
    """MEMSVC_ENV; else a DATABASE_URL means production, and none means local."""
    return os.environ.get("MEMSVC_ENV") or (PRODUCTION if os.environ.get("DATABASE_URL") else LOCAL)


def prepare(*, database: bool = True) -> None:
    """In local mode, put into the environment what settings and child processes read there. Otherwise nothing.

    Where DATABASE_URL is not set, it becomes the embedded server's. With `database` that server is started, and held
    for as long as this process lives.
    """
    if mode() != LOCAL:
        return
    os.environ["MEMSVC_ENV"] = LOCAL
    for name, value in _secrets(embedded.data_folder()).items():
        os.environ[name] = os.environ.get(name) or value
    if not os.environ.get("DATABASE_URL"):
        cluster = embedded.cluster()
        if database:
            cluster.hold()
        os.environ |= dict(zip(embedded.URLS, cluster.urls(), strict=True))


def _secrets(folder: Path) -> dict[str, str]:
    """The secrets of this checkout. Generated on the first start: losing them ends all sessions and API keys."""
    path = folder / "secrets"
    folder.mkdir(parents=True, exist_ok=True, mode=0o711)
    if not path.exists():
        unfinished = path.with_name(f".secrets.{os.getpid()}")
        with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.writelines(f"{name}={secrets.token_urlsafe(48)}\n" for name in SECRETS)
        try:
            # link, not rename: of several first starts at once, all must end with the same secrets.
            path.hardlink_to(unfinished)
        except FileExistsError:
            pass
        finally:
            unfinished.unlink()
    return dict(line.split("=", 1) for line in path.read_text().splitlines())
