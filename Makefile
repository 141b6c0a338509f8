# plait: each target does its own set-up. Start with `make demo`.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:

VENV := .venv
PYTHON ?= python3
PLAIT := $(VENV)/bin/plait
BINARIES := src/plait/_bin/plait-agent src/plait/_bin/plait-contain
SOURCES := $(shell find agent contain -name '*.rs' -o -name '*.toml') Cargo.toml Cargo.lock \
	$(shell find src/plait/prototype src/plait/plan/model src/plait/traffic -name '*.py') src/plait/parts.py src/plait/dataset/model.py \
	tools/contract.py

STARTED := $(shell date +%s)
TOOK = @echo "make $@: $$(( $$(date +%s) - $(STARTED) )) s"

.PHONY: demo setup kernel quic bpf peers quick unit test lint check format bench docs dist gallery clean

demo: kernel ## run the first experiment and print where its report is
	$(PLAIT) run two-paths

setup: $(VENV)/.installed $(BINARIES) ## install everything, with the command at .venv/bin/plait

kernel: setup ## build the laboratory kernel into the user's cache (a few minutes, once)
	$(PLAIT) kernel build

quic: build/plait-quic ## build plait-quic, which the scenario mptcp-mpquic runs
	@echo "plait-quic is at $(CURDIR)/build/plait-quic; install it in /usr/local/bin, where plait looks for programs"

bpf: ## compile congestion controls for stock kernels beside plait's own programs (see bpf/README.md)
	$(MAKE) --no-print-directory -C bpf

peers: setup ## install what only tests need; without root, the tests that need it are skipped
	tools/system-packages test || [[ $$? -eq 3 ]]
	tools/npm-packages || { [[ $$? -eq 3 ]] && echo "tests of BitTorrent are skipped"; }

quick: setup ## run linters, types, style and unit tests (two minutes); needs no kernel and no network, and boots nothing
	$(MAKE) --no-print-directory -j 2 --output-sync=target lint unit
	$(TOOK)

unit: setup
	$(VENV)/bin/pytest tests/unit -n auto --dist worksteal -m "not slow"

test: kernel peers ## run all tests; as root, run them as an ordinary user, and then those that differ for root
	tools/all-tests
	$(TOOK)

check: lint ## run every linter, the type checker and the style tests
	$(VENV)/bin/pytest tests/unit/test_style.py tests/unit/style

lint: setup
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy
	cargo=$$(tools/rust); "$$cargo" fmt --check; "$$cargo" clippy --release --all-targets -- -D warnings
	if command -v shellcheck >/dev/null; then shellcheck $$(grep -d skip -lE '^#!.*(bash|sh)$$' tools/*) .ci/run src/plait/engine/remote/keeper.sh src/plait/testing/selftest/sysctl.sh packaging/nightly/night.sh; else echo "shellcheck is not installed: skipped"; fi

format: setup ## format Python, Rust and the documents as `make check` expects
	$(VENV)/bin/ruff format
	cargo=$$(tools/rust); "$$cargo" fmt
	git ls-files '*.md' | xargs $(VENV)/bin/mdformat

bench: kernel ## measure the promised figures on this machine
	$(VENV)/bin/python bench/run.py
	PLAIT_FUZZ=10 $(VENV)/bin/pytest -q tests/security/test_fuzz.py
	PLAIT_WHOLE_PAGES=1 $(VENV)/bin/pytest -q tests/guest/programs/test_how_to_programs.py
	$(VENV)/bin/python bench/left_as_found.py
	$(VENV)/bin/python bench/containment.py 10 --each
	$(VENV)/bin/python bench/lines/coverage.py --lines 12
	$(VENV)/bin/python bench/crosscheck.py

docs: setup ## build the documentation site into build/site; a warning is an error
	$(VENV)/bin/python tools/site/build.py
	@echo "open build/site/index.html"

dist: kernel ## build the wheels of plait and of the laboratory kernel, and its source, into dist/
	$(VENV)/bin/python tools/dist/build.py

gallery: kernel ## rebuild docs/gallery from its studies (about an hour on two processors, once)
	$(VENV)/bin/python tools/gallery

clean:
	rm -rf $(VENV) target build dist src/plait/_bin

$(VENV)/.installed: pyproject.toml constraints.txt tools/python-packages
	PYTHON=$(PYTHON) tools/system-packages
	$(PYTHON) -m venv $(VENV)
	tools/python-packages $(VENV)
	touch $@

build/plait-quic: $(shell find programs/quic/src -name '*.rs') programs/quic/Cargo.toml programs/quic/Cargo.lock
	cargo=$$(tools/rust); cd programs/quic; "$$cargo" build --release --locked
	install -D "$$(ls -t programs/quic/target/*/release/plait-quic programs/quic/target/release/plait-quic 2>/dev/null | head -n1)" $@

$(BINARIES) &: $(SOURCES) | $(VENV)/.installed
	cargo=$$(tools/rust); "$$cargo" build --release --locked --bins
	for name in plait-agent plait-contain; do \
	  install -D "$$(ls -t target/*/release/$$name target/release/$$name 2>/dev/null | head -n1)" src/plait/_bin/$$name; \
	done
