# One command per chore. All that these make lies in .venv, .tools and .local (or MEMSVC_DATA_DIR).

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup run stop test check demo bench bench-recall

UV_VERSION := 0.13.9
UV := $(shell command -v uv || echo .tools/bin/uv)
PYTHON := .venv/bin/python
SYNCED := .venv/.synced
DATA_DIR := $(or $(MEMSVC_DATA_DIR),.local)
PID_FILE := $(DATA_DIR)/gunicorn.pid
WORKER_PID_FILE := $(DATA_DIR)/worker.pid
PORT ?= 8000
TEST_PROCESSES ?= 2

help: ## list the chores
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | while IFS=$$'\t' read -r name what; do printf '  make %-12s  %s\n' "$$name" "$$what"; done

setup: $(SYNCED) ## make .venv with the locked dependencies

run: $(SYNCED) ## start everything on 127.0.0.1:8000 (PORT=… for another port); Ctrl-C ends it
	@echo "==> Database"
	@if [ -n "$${DATABASE_URL:-}" ]; then echo "the server of DATABASE_URL"; else $(PYTHON) -m memsvc.embedded start; fi
	@echo "==> Database roles and migrations"
	@$(PYTHON) manage.py database_roles
	@$(PYTHON) manage.py migrate --no-input
	@echo "==> Demo tenant"
	@$(PYTHON) manage.py demo_tenant
	@echo "==> Server: http://127.0.0.1:$(PORT) (admin: http://127.0.0.1:$(PORT)/admin/), ready when it says Listening"
	@export MEMSVC_BIND=127.0.0.1:$(PORT) MEMSVC_PID_FILE=$(PID_FILE); \
	.venv/bin/gunicorn & server=$$!; \
	$(PYTHON) manage.py worker & worker=$$!; echo $$worker > $(WORKER_PID_FILE); \
	trap 'kill -TERM $$server 2>/dev/null' INT TERM HUP; \
	while status=0; wait $$server || status=$$?; kill -0 $$server 2>/dev/null; do :; done; \
	kill -TERM $$worker 2>/dev/null && wait $$worker || true; rm -f $(WORKER_PID_FILE); exit $$status

stop: ## stop the server, its worker and the embedded PostgreSQL
	@for process in "server $(PID_FILE)" "worker $(WORKER_PID_FILE)"; do \
	  read -r name file <<< "$$process"; \
	  if pid="$$(cat "$$file" 2>/dev/null)" && kill -TERM "$$pid" 2>/dev/null; then \
	    while kill -0 "$$pid" 2>/dev/null; do sleep 0.1; done; echo "$$name: stopped"; \
	  else echo "$$name: was not running"; fi; \
	done
	@if [ -x $(PYTHON) ]; then echo "PostgreSQL: $$($(PYTHON) -m memsvc.embedded stop)"; fi

test: $(SYNCED) ## run the whole test suite, in two processes (TEST_PROCESSES=… for another number)
	@$(PYTHON) -m pytest --numprocesses $(TEST_PROCESSES) --dist worksteal

check: $(SYNCED) ## lint, format, types, imports between rooms, missing migrations, the API's description
	@echo "==> ruff"; .venv/bin/ruff check; .venv/bin/ruff format --check
	@echo "==> mypy"; $(PYTHON) -m mypy
	@echo "==> imports"; .venv/bin/lint-imports
	@echo "==> migrations"; $(PYTHON) manage.py makemigrations --check --dry-run
	@echo "==> OpenAPI"; $(PYTHON) manage.py spectacular --validate --fail-on-warn | diff -q docs/openapi.yaml - \
	  || { echo "Bring it up to date: $(PYTHON) manage.py spectacular --file docs/openapi.yaml" >&2; exit 1; }

demo: $(SYNCED) ## show the main job end to end; ends by itself
	@$(PYTHON) -m examples.support_team

bench-recall: $(SYNCED) ## measure what search finds (LOCOMO=…/locomo10.json, which is not part of memsvc)
	@$(PYTHON) -m benchmarks.evidence

bench: $(SYNCED) ## measure against the peers, one table
	@UV_PYTHON_DOWNLOADS=never $(UV) sync --quiet --frozen --inexact --group peers
	@$(PYTHON) -m benchmarks

$(SYNCED): pyproject.toml uv.lock .python-version | $(UV)
	@echo "==> Python environment in .venv"
	@export UV_PYTHON_DOWNLOADS=never; \
	python="$$($(UV) python find "$$(cat .python-version)" 2>/dev/null || $(UV) python find '>=3.12' 2>/dev/null || true)"; \
	if [ -z "$$python" ]; then \
	  echo "memsvc needs Python 3.12 or later, and there is none here. Install one, for example:" >&2; \
	  echo "  apt install python3.13 python3.13-venv | brew install python@3.13 | pyenv install 3.13 | $(UV) python install 3.13" >&2; \
	  exit 1; \
	fi; \
	echo "with $$python"; \
	$(UV) sync --frozen --inexact --python "$$python"
	@touch $@

.tools/bin/uv:
	@echo "==> uv $(UV_VERSION), from PyPI into .tools"
	@python3 -m venv .tools || { echo "python3 cannot make virtual environments: apt install python3-venv" >&2; exit 1; }
	@.tools/bin/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
