# One command each; all of them set up what they need.
#   make demo       four methods race on two tasks on this machine; prints the standings
#   make test       the fast tests (under three minutes)
#   make test-all   the slow ones too: every test that needs no GPU (what CI runs)
#   make check      the one check: format, lint, types, architecture, fast tests
#   make bench      the figures of the README, with raw output kept under tests/benchmarks/results
#   make screenshot renders the standings page of ./runs to docs/standings.png

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Processes of the tests.
JOBS ?= 2
# torch is named first and exactly: without a GPU a bare `torch` would pull gigabytes of CUDA libraries.
TORCH ?= torch==2.13.0

.PHONY: setup demo test test-slow test-all check lint bench screenshot clean

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Kernel Derby needs Python 3.11 or newer; this is $$($(PYTHON) --version). Set PYTHON=..."; exit 4; }
	@command -v g++ >/dev/null || { echo "g++ was not found: kernels of the cpu lane are compiled here. On Debian or Ubuntu: apt-get install g++"; exit 4; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt $(TORCH)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: setup
	$(BIN)/derby demo

test: setup
	$(BIN)/python -m pytest -m "not slow and not gpu" -n $(JOBS) --dist loadfile

test-slow: setup
	$(BIN)/python -m pytest -m "slow and not gpu" -n $(JOBS) --dist loadfile

test-all: test test-slow

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint test

bench: setup
	$(BIN)/python -m tests.benchmarks

screenshot: setup
	$(BIN)/python -m leaderboard.screenshot docs/standings.png

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
