# Every target works as the first command on a fresh machine with Python >= 3.11.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(min(8, os.cpu_count() or 1))')
PIP := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test nightly bench lint clean

# From clone to verdict: the quickstart sweep and its report.
demo: $(VENV)/.run
	$(BIN)/python -m study -m experiment=quickstart workers=$(WORKERS)
	$(BIN)/python -m analysis report runs/quickstart

# Linters, types, import contracts, then all tests but the markers nightly and gpu, a file a core; in
# the order of the folders, which has the long files first.
test: lint
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

nightly: $(VENV)/.dev
	$(BIN)/python -m pytest -m nightly --timeout 3600

# The packed engine against TRL, in turns: run-steps, scaling, memory, whole sweeps (40 minutes on a
# quiet machine); their figures in runs/; the overhead of a sweep around its training; and what a
# report of 10,000 runs takes.
bench: $(VENV)/.dev
	$(BIN)/python -m study.bench --json runs/bench.json
	$(BIN)/python -m analysis figure bench runs/bench.json
	$(BIN)/python -m tests.benchmarks.sweep_overhead
	$(BIN)/python -m tests.benchmarks.report_scale

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("Python >= 3.11 is needed" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) torch==2.13.0
	$(PIP) -e .
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) torch==2.13.0
	$(PIP) -e '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) build *.egg-info .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
