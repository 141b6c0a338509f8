# plait: each target does its own set-up. Start with `make demo`.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:

VENV := .venv
PYTHON ?= python3
PLAIT := $(VENV)/bin/plait
AGENT := src/plait/_bin/plait-agent
AGENT_SOURCES := $(shell find agent -name '*.rs' -o -name '*.toml') Cargo.toml Cargo.lock

.PHONY: demo setup kernel peers test test-users check bench gallery clean

demo: kernel ## run the first experiment and say where its report is
	$(PLAIT) run two-paths

setup: $(VENV)/.installed $(AGENT) ## leave the command at .venv/bin/plait

kernel: setup ## build the laboratory kernel into the user's cache (a few minutes, once)
	$(PLAIT) kernel build

peers: setup ## what only tests need; an ordinary user cannot install it, and tests that need it are skipped then
	tools/system-packages test || [[ $$? -eq 3 ]]
	tools/npm-packages || { [[ $$? -eq 3 ]] && echo "tests of BitTorrent are skipped"; }

test: kernel peers ## everything that must be true
	$(VENV)/bin/pytest -n auto
	cargo=$$(tools/rust); "$$cargo" test --release --quiet

test-users: kernel peers ## everything as an ordinary user (made for it by root), and as root what root does in another way
	cargo=$$(tools/rust); "$$cargo" test --release --quiet
	tools/test-as-user -n auto
	$(VENV)/bin/pytest -n auto -m "users or not guest"

check: setup ## every linter, the types, and the style of the house
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy
	cargo=$$(tools/rust); "$$cargo" fmt --check; "$$cargo" clippy --release --all-targets -- -D warnings
	$(VENV)/bin/pytest tests/unit/test_style.py
	if command -v shellcheck >/dev/null; then shellcheck $$(grep -d skip -lE '^#!.*(bash|sh)$$' tools/*) .ci/run; else echo "shellcheck is not installed: skipped"; fi

bench: kernel ## the figures that plait promises, measured on this machine
	$(VENV)/bin/python bench/run.py

gallery: kernel ## the pages of docs/gallery, from their studies (about an hour of two processors, once)
	$(VENV)/bin/python tools/gallery

clean:
	rm -rf $(VENV) target src/plait/_bin

$(VENV)/.installed: pyproject.toml constraints.txt
	PYTHON=$(PYTHON) tools/system-packages
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

$(AGENT): $(AGENT_SOURCES) | $(VENV)/.installed
	cargo=$$(tools/rust); "$$cargo" build --release --locked --bin plait-agent
	install -D "$$(ls -t target/*/release/plait-agent target/release/plait-agent 2>/dev/null | head -n1)" $@
