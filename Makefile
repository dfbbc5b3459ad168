# One command each; everything runs in .venv, which is made on first use and again only when the pins change.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

LOWEST := .venv-lowest
# A name on the PATH may be a shim without a Python behind it.
LOWEST_PYTHON ?= $(shell for found in python3.10 $$HOME/.pyenv/versions/3.10*/bin/python3.10; do "$$found" -c "" 2> /dev/null && echo "$$found" && break; done)
NEWEST := .venv-newest
NEWEST_PYTHON ?= $(shell for found in python3.13 $$HOME/.pyenv/versions/3.13*/bin/python3.13; do "$$found" -c "" 2> /dev/null && echo "$$found" && break; done)
CORE_TESTERS := "pytest>=8" hypothesis pandas networkx
# What a user needs to fit and embed.
CORE_TESTS := tests/pretext tests/encoders tests/structure tests/training/test_training_loop.py tests/training/test_training_checkpoint.py tests/graphs/test_graphs_edge_lists.py tests/graphs/test_graphs_checks.py tests/graphs/test_graphs_writers.py

.PHONY: help install demo test test-shuffled test-lowest test-newest soak mutants audit check format docs bench clean

help:
	@echo "make install  set up .venv with all extras"
	@echo "make demo     pre-train on the embedded Cora, print a table, write demo/report.html"
	@echo "make test     all tests (real data too if TOPOTER_DATA is set)"
	@echo "make check    ruff, mypy and the direction of imports"
	@echo "make format   let ruff put the code in shape"
	@echo "make docs     the documentation, into site/"
	@echo "make test-lowest  core tests with the lowest versions that pyproject.toml allows"
	@echo "make test-newest  core tests on the newest Python that pyproject.toml allows"
	@echo "make test-shuffled  all tests in another order every time"
	@echo "make soak     kills, bad input, full disks and more, for hours, into docs/reliability.md"
	@echo "make mutants  change the code place by place and see whether the tests notice (needs cosmic-ray)"
	@echo "make audit    are the packages installed those that are pinned, and as delivered? (no network)"
	@echo "make bench    speed and memory, into results/bench.json and docs/performance.md"

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 10) <= v <= (3, 13) else f"topoter needs Python 3.10 to 3.13, {sys.executable} is {v[0]}.{v[1]}. Try: make PYTHON=python3.12")'
	test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "No virtual environment could be made: on Debian and Ubuntu install python3-venv."; exit 1; }
	$(BIN)/python -m pip install --disable-pip-version-check -q -c constraints.txt -e ".[dev,demo,baselines,search,cluster,scale,molecules]"
	touch $(STAMP)

demo: install
	$(BIN)/topoter demo

test: install
	# One process per core, each with one thread: most tests are small, or start processes of their own.
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal

test-lowest:
	@test -n "$(LOWEST_PYTHON)" || { echo "make test-lowest needs Python 3.10: make test-lowest LOWEST_PYTHON=/path/to/python3.10"; exit 1; }
	test -x $(LOWEST)/bin/pip || $(LOWEST_PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python tests/trust/lowest.py > $(LOWEST)/lowest.txt
	$(LOWEST)/bin/pip install --disable-pip-version-check -q -r $(LOWEST)/lowest.txt $(CORE_TESTERS) tomli
	PYTHONPATH=$(CURDIR)/src OMP_NUM_THREADS=1 $(LOWEST)/bin/python -m pytest -p no:cacheprovider $(CORE_TESTS)

test-newest:
	@test -n "$(NEWEST_PYTHON)" || { echo "make test-newest needs Python 3.13: make test-newest NEWEST_PYTHON=/path/to/python3.13"; exit 1; }
	test -x $(NEWEST)/bin/pip || $(NEWEST_PYTHON) -m venv $(NEWEST)
	$(NEWEST)/bin/pip install --disable-pip-version-check -q -c constraints.txt -e ".[scale,molecules]" $(CORE_TESTERS)
	OMP_NUM_THREADS=1 $(NEWEST)/bin/python -m pytest -p no:cacheprovider $(CORE_TESTS)

test-shuffled: install
	$(BIN)/pip install --disable-pip-version-check -q -c constraints.txt "pytest-randomly>=3.15"
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal -p randomly

soak: install
	OMP_NUM_THREADS=1 $(BIN)/python tests/trust/soak.py

mutants: install
	$(BIN)/pip install --disable-pip-version-check -q -c constraints.txt "cosmic-ray>=8.3"
	OMP_NUM_THREADS=1 $(BIN)/python tests/trust/mutants.py

audit: install
	$(BIN)/python tests/trust/supply.py

check: install
	$(BIN)/ruff format --check src tests benchmarks examples
	$(BIN)/ruff check src tests benchmarks examples
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: install
	$(BIN)/ruff format src tests benchmarks examples
	$(BIN)/ruff check --fix src tests benchmarks examples

docs: install
	$(BIN)/mkdocs build --strict

bench: install
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) $(LOWEST) $(NEWEST) build dist site .mypy_cache .ruff_cache .pytest_cache
