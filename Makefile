# Each target sets up what it needs in .venv, from a clean clone with Python >= 3.11 and a C++ compiler.

PYTHON ?= python3
BIN := .venv/bin
CRASHES ?= 6
INSPECTOR := 2.12.0
SOURCES := pyproject.toml CMakeLists.txt $(shell git ls-files engram)

.PHONY: demo test lint bench clean inspector

demo: .venv/installed
	$(BIN)/engram demo

test: lint inspector
	$(BIN)/pytest -n 2 --kills $(CRASHES)

lint: .venv/tested
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

bench: .venv/tested
	mkdir -p benchmarks/results
	$(BIN)/pytest -p no:xdist benchmarks --benchmark-enable --benchmark-json benchmarks/results/bench.json

.venv/bin/python:
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip

.venv/installed: .venv/bin/python $(SOURCES)
	$(BIN)/python -m pip install --quiet .
	touch $@

.venv/tested: .venv/bin/python $(SOURCES)
	$(BIN)/python -m pip install --quiet '.[test]'
	touch $@ .venv/installed

# The MCP's own client. Without npm, or without a network, its tests are skipped and say so.
inspector: .venv/bin/python
	@test -x .venv/inspector/node_modules/.bin/mcp-inspector || \
	npm install --silent --ignore-scripts --no-audit --no-fund --fetch-retries=0 --fetch-timeout=30000 \
		--prefix .venv/inspector @modelcontextprotocol/inspector@$(INSPECTOR) || \
	echo 'inspector: it could not be installed; tests that need it are skipped'

clean:
	rm -rf .venv build dist
