"""The service as a worker that dies once: after the commit of a change, before its answer is sent.

It does so for the request that bears the header `X-Die`, and only while the file named by DIE_ONCE is there.
"""

import os
import signal
from pathlib import Path
from typing import Any

from memsvc.wsgi import application as service


def application(environ: dict[str, Any], start_response: Any) -> Any:
    answer = service(environ, start_response)
    marker = Path(os.environ["DIE_ONCE"])
    if "HTTP_X_DIE" in environ and marker.exists():
        marker.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return answer
