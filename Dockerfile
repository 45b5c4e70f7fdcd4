# syntax=docker/dockerfile:1
# Two stages: the first makes the virtual environment, the second holds only it and the code.

FROM python:3.13-slim-bookworm AS build
ENV UV_PYTHON_DOWNLOADS=never UV_LINK_MODE=copy UV_COMPILE_BYTECODE=1
RUN pip install --no-cache-dir uv==0.13.9
WORKDIR /app
COPY pyproject.toml uv.lock .python-version ./
RUN uv sync --frozen --no-dev

FROM python:3.13-slim-bookworm
RUN useradd --system --uid 10001 --home-dir /app --shell /usr/sbin/nologin memsvc
WORKDIR /app
ENV PATH=/app/.venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    MEMSVC_ENV=production \
    MEMSVC_BIND=0.0.0.0:8000 \
    MEMSVC_STATIC_ROOT=/app/staticfiles
COPY --from=build /app/.venv .venv
COPY . .
# Root owns the code: the service cannot change itself.
RUN python manage.py collectstatic --no-input --verbosity=0 && python -m compileall -q memsvc tenants migrations
USER memsvc
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
CMD ["gunicorn"]
