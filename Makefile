# Two commands matter: `make census` and `make test`. For the numbers behind README and docs: `make bench`.
# Everything is installed into .venv from pyproject.toml, for each command what it needs; nothing is needed beforehand but Python 3.11 or newer.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: setup lint types test examples census mutants faults minimums soak bench stress theory figures schemas screenshots studio-bench bench-census bench-certified bench-designs bench-growth results speedups paper docs clean

setup: $(VENV)/.installed

# what `make census` needs; the tools for everything else are installed on top of it when they are first needed
$(VENV)/.installed-run: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "exactdp needs Python 3.11 or newer. Found %d.%d; call make PYTHON=python3.11." % sys.version_info[:2])'
	@echo "Installing exactdp into $(VENV), once ..."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[plots]'
	touch $@

$(VENV)/.installed: $(VENV)/.installed-run
	@echo "Installing the tools for tests and documentation into $(VENV), once ..."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	touch $@

lint: setup
	$(BIN)/ruff check src tests benchmarks docs/*.py
	$(BIN)/ruff format --check src tests benchmarks docs/*.py

types: setup
	$(BIN)/mypy

# tests start hundreds of processes: what Python compiled is kept, whatever the environment says
test: export PYTHONDONTWRITEBYTECODE =
test: lint types
	$(BIN)/pytest -n auto --dist worksteal -rs -m 'not soak'

# the oldest dependencies that pyproject.toml allows, in an environment of their own; EXTRAS="plots studio" tries these
minimums:
	$(PYTHON) -m venv --clear build/minimums
	build/minimums/bin/python -m pip install --quiet --disable-pip-version-check --editable . $$($(PYTHON) tests/minimums.py pins $(EXTRAS)) 'pytest>=8' 'hypothesis>=6.100' 'mpmath>=1.3' 'httpx>=0.27' 'pydantic>=2'
	build/minimums/bin/python tests/minimums.py test $(EXTRAS)

mutants: setup
	$(BIN)/python tests/mutants.py

census: $(VENV)/.installed-run
	$(BIN)/exactdp census

faults: setup
	$(BIN)/python tests/faults.py

soak: setup
	$(BIN)/pytest -m soak -s
	$(BIN)/pytest -n auto --dist worksteal -m hypothesis --hypothesis-profile fresh

bench: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,bench]'
	$(BIN)/python benchmarks/run.py

results: setup
	$(BIN)/python benchmarks/published.py

# every number of docs/paper.md: what its commands print is written anew, its other claims are checked, tables are made again
paper: setup results speedups figures
	$(BIN)/python tests/examples.py docs/paper.md
	$(BIN)/pytest -n auto tests/test_docs.py tests/test_published_tables.py tests/census/test_proxy.py tests/census/test_savings.py -k 'paper or results or published or proxy or savings or proved'

# the table of docs/benchmarks.md, "The speed-ups of the paper"
speedups: setup
	$(BIN)/python benchmarks/speedups.py

figures: setup
	$(BIN)/python docs/rooms_figure.py
	$(BIN)/python docs/concepts_figure.py
	$(BIN)/python docs/optimize_figure.py
	$(BIN)/python docs/release_figures.py
	$(BIN)/python docs/whole_census.py > /dev/null

schemas: setup
	for name in certificate design-certificate joint-certificate design object; do $(BIN)/exactdp schema $$name -o docs/schemas/$$name-1.json; done

# what commands print, as README and documentation show it
examples: setup
	$(BIN)/python tests/examples.py $$(grep -l '^```console' README.md docs/*.md)

screenshots: setup
	$(BIN)/python docs/screenshots.py

studio-bench: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,bench]'
	$(BIN)/python benchmarks/studio_latency.py
	$(BIN)/python benchmarks/studio_load.py

theory: setup
	$(BIN)/python benchmarks/edgeworth.py

# what `exactdp census` costs beside its account, and what a second core gains: docs/benchmarks.md
bench-census: setup
	$(BIN)/python benchmarks/census_command.py

stress: setup
	$(BIN)/python benchmarks/stress.py

# edited designs beside the published one, and what all pairs cost as a design grows
bench-designs: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test,bench]'
	$(BIN)/python benchmarks/any_design.py

bench-growth: setup
	$(BIN)/python benchmarks/growth.py

bench-certified: setup
	$(BIN)/python benchmarks/certified_pairs.py

docs: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict -d build/site

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache build dist
