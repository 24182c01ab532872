# Everything here works in a fresh clone: what is missing is set up first, and setting up again costs nothing.
#   make demo    build, audit, index, install and test wheels of torch-scatter into dist/, with the Python that is here
#   make test    the test suite; make lint, make docs: what CI runs beside it
#   make coverage   which lines the quick tests reach (TESTS=... for others): the least covered modules, HTML
#   make proof   slow evidence (many kills, big wheels); make bench: benchmarks; make clean: back to a fresh clone

# PYTHON=/path/to/python3 names the Python that .venv is made with.
export PYTHON
BIN := .venv/bin
# The commands start many short Python processes: let them find their bytecode.
unexport PYTHONDONTWRITEBYTECODE PYTHONPATH PYTHONHOME VIRTUAL_ENV
TEST := $(BIN)/pytest -n 2 --dist loadgroup

.PHONY: help demo test coverage proof lint format docs bench clean
help:
	@sed -n 's/^#   //p' Makefile

.venv/.ready-run: pyproject.toml scripts/setup
	scripts/setup venv run
	@touch $@

.venv/.ready-dev: pyproject.toml scripts/setup
	scripts/setup venv dev
	@touch $@ .venv/.ready-run

demo: .venv/.ready-run
	@scripts/setup compiler
	@$(BIN)/python scripts/demo.py

test: .venv/.ready-dev
	@scripts/setup tests
	$(TEST)

# The layers that decide. The others work in processes of their own, which tests/host and tests/flow start.
PURE := core recipe backends buildsystem environment plan binary package check report view
TESTS ?= tests/pure tests/golden
coverage: .venv/.ready-dev
	@$(TEST) $(foreach layer,$(PURE),--cov=src/axletree/$(layer)) --cov-report= $(TESTS); code=$$?; \
	$(BIN)/coverage html --quiet && $(BIN)/coverage report --sort=-cover | tail -n 32 && \
	echo "all lines: build/coverage/index.html" && exit $$code

proof: .venv/.ready-dev
	@scripts/setup tests
	@scripts/setup daemon
	$(TEST) tests -m proof

lint: .venv/.ready-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml

format: .venv/.ready-dev
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

docs: .venv/.ready-dev
	$(BIN)/python docs/generate.py
	$(BIN)/zensical build --strict

bench: .venv/.ready-dev
	@for file in benchmarks/bench_*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

clean:
	rm -rf .venv .cache dist site build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
