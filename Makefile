# Two commands serve a fresh machine that has Python and make: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
BARE := .venv-bare
PIP := -m pip --disable-pip-version-check install --quiet --no-compile
INSTALL := $(BIN)/python $(PIP) -c constraints.txt
# Bytecode is made of what is imported, a tenth of what is installed, and kept: hundreds of tests
# start a process.
export PYTHONDONTWRITEBYTECODE =

THREADS = 1
WORKERS = 2
PYTEST = OPENBLAS_NUM_THREADS=$(THREADS) OMP_NUM_THREADS=$(THREADS) \
	$(1)/bin/python -m pytest -n $(WORKERS) --dist worksteal
comma := ,
LANES = +@MAKE="$(MAKE)" $(PYTHON) tests/lanes.py

# Where tables are judged, which no optional library is needed for.
TABLES := $(addprefix tests/,conformal core golden inputs predictions recalibration report)
NUMBERS := $(addprefix tests/,figures laws metrics stats)
EVERY := src tests studies
# Files with tests of a lane; `conftest.py` checks that those of the rest are all found.
RATED = $(shell grep -rlE "mark\.rate" --include=*.py $(EVERY))
RESTED = $(shell grep -rlE "mark\.(slow|data)|data_dir|browser" --include=test_*.py $(EVERY))

# Kernels of linear algebra, and NumPy without AVX-512, then without AVX2.
AVX512 := X86_V4,AVX512_ICL,AVX512_SPR
PROCESSORS := $(addprefix OPENBLAS_CORETYPE=,Haswell SkylakeX Zen) \
	$(addprefix NPY_DISABLE_CPU_FEATURES=,$(AVX512) X86_V3,$(AVX512))
QUICK = -m "not (slow or rate or data or browser)"
REST = -m "(slow or data or browser) and not rate"
# Adds to what the environment requires: $(call REQUIRE,site)
REQUIRE = HOWSURE_REQUIRE=$${HOWSURE_REQUIRE:+$$HOWSURE_REQUIRE,}$(1)

.PHONY: demo test test-quick test-bare test-rest test-changed test-python test-lowest fuzz \
	rates processors lint docs docs-quick benchmark papers mutate dist clean

demo: .venv/.report
	rm -f demo/predictions.csv demo/report.html
	$(BIN)/howsure demo demo

# All lanes; a red one keeps no other from running. Those joined by & run at the same time.
test:
	@$(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j2) .venv/.dev $(BARE)/.made
	$(LANES) "lint & docs-quick" test-bare "test-quick NEEDS=site"

test-quick: .venv/.dev
	$(call REQUIRE,$(NEEDS)) $(call PYTEST,.venv) $(QUICK) --pace test $(EVERY)

# What `make test` leaves out: what is slow, or uses real data or a browser.
test-rest: .venv/.dev
	$(LANES) docs rest

# Where pages and children are waited for, a third worker has time.
rest: WORKERS = 3
rest: .venv/.dev
	$(call REQUIRE,site) $(call PYTEST,.venv) $(REST) --pace rest $(RESTED)

# For the hand: tests of rooms at or above the lowest that differs from the last commit: SINCE=main
test-changed: .venv/.dev
	$(call PYTEST,.venv) $(QUICK) $$($(BIN)/python tests/changed.py $(SINCE))

# What is too dear for every day: all, or one of four parts by QUARTER=2.
rates: .venv/.rates
	$(call REQUIRE,numpyro$(comma)pymc) $(call PYTEST,.venv) -m rate --pace rates$(if $(QUARTER),-quarter --quarter $(QUARTER)) $(RATED)

# Ten times as many examples as tests name, from fresh seeds.
fuzz: .venv/.dev
	HOWSURE_FUZZ=10 $(call PYTEST,.venv) -m "hypothesis and not rate" $(EVERY)

# Whether the tests hang on the processor: the quick ones on each, with one thread and with two.
processors:
	$(LANES) $(foreach one,$(PROCESSORS),"test-quick THREADS=1 $(one)" "test-quick THREADS=2 $(one)")

# Where no optional library is installed, tables are read and reported all the same.
test-bare: $(BARE)/.made
	HOWSURE_REQUIRE=bare $(call PYTEST,$(BARE)) $(QUICK) --one-variant --pace bare \
		$(addprefix tests/,core inputs predictions report)

# Before a release: the same on another Python, by make test-python PYTHON=python3.13
test-python:
	$(MAKE) test-bare BARE=.venv-python-$(shell $(PYTHON) -c "import platform; print(platform.python_version())")

# Before a release: with the oldest of each library that is declared, which may call newer ones by
# deprecated names.
test-lowest: .venv-lowest/.made
	$(call PYTEST,.venv-lowest) -W default::DeprecationWarning $(QUICK) $(TABLES) $(NUMBERS) \
		$(addprefix tests/,cli verdict watch)

# The site: docs/_build/html/index.html. Warnings, such as links that lead nowhere, are errors.
# `docs-quick` leaves out what scripts draw.
docs docs-quick: .venv/.dev
	$(if $(filter docs-quick,$@),HOWSURE_DOCS=quick) \
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MPLBACKEND=agg $(BIN)/python -m sphinx -q -W --keep-going \
		-b html -j 2 -d docs/_build/doctrees docs docs/_build/html

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

benchmark: .venv/.dev
	$(BIN)/python benchmarks/assess.py

# Results that ship with studies, and the case studies made of them: make papers PAPERS="pointwise"
papers: .venv/.dev
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.papers $(PAPERS)

# What is published: an archive and a wheel of each distribution, each in a folder of its own.
dist: .venv-dist/.made
	rm -rf dist
	.venv-dist/bin/python -m build --quiet -o dist/howsure .
	.venv-dist/bin/python -m build --quiet -o dist/howsure-studies studies

# How many of a sample of planted faults the tests catch: make mutate SAMPLE=300
SAMPLE ?= 200
mutate: .venv/.dev
	$(INSTALL) "mutmut>=3.8,<4"
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.mutation --sample $(SAMPLE)

clean:
	rm -rf .venv .venv-* demo mutants docs/_build docs/learn docs/figures docs/reference/api

.venv/.made:
	$(PYTHON) -m venv .venv
	touch $@

$(BARE)/.made: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python $(PIP) -c constraints.txt \
		-e . pytest pytest-xdist hypothesis
	touch $@

.venv-lowest/.made: pyproject.toml studies/pyproject.toml tests/lowest.py
	$(PYTHON) -m venv $(@D)
	$(PYTHON) tests/lowest.py > $(@D)/lowest.txt
	$(@D)/bin/python $(PIP) -c $(@D)/lowest.txt \
		-e ".[plots,report,cluster,netcdf,excel]" -e "./studies[vision]" pytest pytest-xdist hypothesis
	touch $@

.venv-dist/.made:
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python $(PIP) build
	touch $@

.venv/.report: .venv/.made pyproject.toml studies/pyproject.toml constraints.txt
	$(INSTALL) -e ".[report]" -e ./studies
	touch $@

.venv/.dev: .venv/.made pyproject.toml studies/pyproject.toml constraints.txt
	$(INSTALL) -e ".[dev]" -e "./studies[vision,tables,trees]"
	touch $@

# With the sampler of one method of one study, and PyMC, which are too large for every day.
.venv/.rates: .venv/.dev
	$(INSTALL) -e "./studies[vision,bayes]" pymc
	touch $@
