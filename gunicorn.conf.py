"""gunicorn's settings; it reads this file by itself when it is started in the project's folder."""

import gc
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from memsvc import embedded, local

try:
    local.prepare()
    # Only now: settings read what prepare() put into the environment.
    from memsvc import settings
except (embedded.EmbeddedPgError, ImproperlyConfigured) as error:
    sys.exit(f"error: {error}")

wsgi_app = "memsvc.wsgi:application"
bind = os.environ.get("MEMSVC_BIND", "127.0.0.1:8000")
pidfile = os.environ.get("MEMSVC_PID_FILE") or None
worker_class = (
    "gthread"  # a busy thread holds one connection; a sync worker would serve one request at a time
)
workers = settings.WORKERS
threads = settings.THREADS
# The longest that gunicorn takes: a filter by metadata may stand in a URL.
limit_request_line = 8190
# Seconds, both above the database's statement_timeout.
timeout = 30
graceful_timeout = 30
# Longer than clients keep an idle connection, so that none is closed just as the next request is sent on it.
keepalive = 30
control_socket_disable = True
# Seconds for which a client may send nothing of its body, or take nothing of its answer.
STALL_SECONDS = 20
# The service writes its own access log: gunicorn's would hold query strings.
accesslog = None
errorlog = "-"


def on_starting(server: Any) -> None:
    """Refuse to serve with a bad configuration."""
    # In a process of its own, because the workers must not inherit its connections.
    command = [sys.executable, "manage.py", "check", "--database", "default"]
    if not settings.LOCAL:
        command.append("--deploy")
    if subprocess.run(command, cwd=Path(__file__).parent, stdout=subprocess.DEVNULL, check=False).returncode:
        sys.exit("memsvc does not start: see the errors above")


def post_worker_init(worker: Any) -> None:
    """What is loaded by now stays: the garbage collector need not go through it again and again."""
    gc.collect()
    gc.freeze()


def pre_request(worker: Any, request: Any) -> None:
    """A client that stops in the middle must not hold a thread for ever."""
    request.unreader.sock.settimeout(STALL_SECONDS)
