# Two commands serve a fresh machine that has Python and make: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet -c constraints.txt

.PHONY: demo test lint benchmark clean

demo: .venv/.report
	$(BIN)/python examples/demo.py

test: .venv/.dev lint
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

benchmark: .venv/.dev
	$(BIN)/python benchmarks/assess.py

clean:
	rm -rf .venv demo

.venv/.made:
	$(PYTHON) -m venv .venv
	touch $@

.venv/.report: .venv/.made pyproject.toml constraints.txt
	$(PIP) -e ".[report]"
	touch $@

.venv/.dev: .venv/.made pyproject.toml constraints.txt
	$(PIP) -e ".[dev]"
	touch $@
