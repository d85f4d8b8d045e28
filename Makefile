# Two commands serve a fresh machine that has Python and make: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
BARE := .venv-bare
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet -c constraints.txt

THREADS = 1
PYTEST = OPENBLAS_NUM_THREADS=$(THREADS) OMP_NUM_THREADS=$(THREADS) $(1)/bin/python -m pytest -n 2
LANES = +@MAKE="$(MAKE)" $(PYTHON) tests/lanes.py

# The table wing of howsure lies in these folders.
TABLES := $(addprefix tests/,conformal core golden inputs predictions recalibration report)
NUMBERS := $(addprefix tests/,figures laws metrics stats)
JUDGE := src tests
STUDIES := studies

# Kernels of linear algebra, and NumPy without AVX-512, then without AVX2.
AVX512 := X86_V4,AVX512_ICL,AVX512_SPR
PROCESSORS := $(addprefix OPENBLAS_CORETYPE=,Haswell SkylakeX Zen) \
	$(addprefix NPY_DISABLE_CPU_FEATURES=,$(AVX512) X86_V3,$(AVX512))
QUICK = -m "not slow and not rate"

.PHONY: demo test test-judge test-studies test-quick test-fast test-bare test-python test-lowest \
	rates processors lint docs benchmark papers mutate dist clean

demo: .venv/.report
	$(BIN)/python examples/demo.py

# All lanes, one after the other; a red one keeps no other from running.
test:
	$(LANES) lint docs test-bare test-judge test-studies

# Each house has its lane. After `make docs`, for the site is read.
test-judge test-studies: .venv/.dev
	HOWSURE_REQUIRE=$${HOWSURE_REQUIRE:+$$HOWSURE_REQUIRE,}site $(call PYTEST,.venv) \
		-m "not rate" --pace 12 $(if $(filter test-judge,$@),$(JUDGE),$(STUDIES))

# What is too dear for every day.
rates: .venv/.rates
	HOWSURE_REQUIRE=$${HOWSURE_REQUIRE:+$$HOWSURE_REQUIRE,}numpyro,pymc $(call PYTEST,.venv) -m rate --pace 12

# Whether the tests hang on the processor: the quick ones on each, with one thread and with two.
processors:
	$(LANES) $(foreach one,$(PROCESSORS),"test-quick THREADS=1 $(one)" "test-quick THREADS=2 $(one)")

test-quick: .venv/.dev
	$(call PYTEST,.venv) $(QUICK)

# For the hand: tables alone, without torch, a browser, studies or what is slow.
test-fast: .venv/.dev
	HOWSURE_WITHOUT=torch $(call PYTEST,.venv) $(QUICK) $(TABLES) $(NUMBERS)

# Where no optional library is installed, tables are served all the same.
test-bare: $(BARE)/.made
	HOWSURE_REQUIRE=bare $(call PYTEST,$(BARE)) $(QUICK) $(TABLES)

# Before a release: the same on another Python, by make test-python PYTHON=python3.13
test-python:
	$(MAKE) test-bare BARE=.venv-python-$(shell $(PYTHON) -c "import platform; print(platform.python_version())")

# Before a release: with the oldest of each library that is declared, which may call newer ones by
# deprecated names.
test-lowest: .venv-lowest/.made
	$(call PYTEST,.venv-lowest) -W default::DeprecationWarning $(QUICK) $(TABLES) $(NUMBERS) \
		$(addprefix tests/,cli verdict watch)

# The site: docs/_build/html/index.html. Warnings, such as links that lead nowhere, are errors.
docs: .venv/.dev
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
	$(PIP) "mutmut>=3.8,<4"
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.mutation --sample $(SAMPLE)

clean:
	rm -rf .venv .venv-* demo mutants docs/_build docs/learn docs/figures docs/reference/api

.venv/.made:
	$(PYTHON) -m venv .venv
	touch $@

$(BARE)/.made: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip --disable-pip-version-check install --quiet -c constraints.txt \
		-e . pytest pytest-xdist hypothesis
	touch $@

.venv-lowest/.made: pyproject.toml studies/pyproject.toml tests/lowest.py
	$(PYTHON) -m venv $(@D)
	$(PYTHON) tests/lowest.py > $(@D)/lowest.txt
	$(@D)/bin/python -m pip --disable-pip-version-check install --quiet -c $(@D)/lowest.txt \
		-e ".[plots,report,cluster,netcdf,excel]" -e "./studies[vision]" pytest pytest-xdist hypothesis
	touch $@

.venv-dist/.made:
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip --disable-pip-version-check install --quiet build
	touch $@

.venv/.report: .venv/.made pyproject.toml studies/pyproject.toml constraints.txt
	$(PIP) -e ".[report]" -e ./studies
	touch $@

.venv/.dev: .venv/.made pyproject.toml studies/pyproject.toml constraints.txt
	$(PIP) -e ".[dev]" -e "./studies[vision,tables,trees]"
	touch $@

# With the sampler of one method of one study, and PyMC, which are too large for every day.
.venv/.rates: .venv/.dev
	$(PIP) -e "./studies[vision,bayes]" pymc
	touch $@
