# Every target sets up what it needs: a virtual environment in $(VENV) with the versions of $(CONSTRAINTS).
PYTHON ?= python3
VENV ?= .venv
CONSTRAINTS ?= constraints.txt
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: demo test test-upstream docs lint format types dist clean

$(INSTALLED): pyproject.toml $(CONSTRAINTS)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint $(CONSTRAINTS) --editable '.[dev]'
	touch $@

demo: $(INSTALLED)  ## train every family on the embedded tasks, print the table and write the report
	$(BIN)/python -m benchmarks.demo

test: $(INSTALLED)  ## every test, transformers' own suite included
	$(BIN)/python -m pytest -n auto --dist worksteal

test-upstream: $(INSTALLED)  ## only transformers' own suite on our classes
	$(BIN)/python -m pytest -n auto --dist worksteal -m upstream

docs: $(INSTALLED)  ## the API reference from the docstrings, in build/api
	$(BIN)/python -m docs.build_api

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(INSTALLED)
	$(BIN)/mypy

dist: $(INSTALLED)  ## sdist and wheel, in dist/
	$(BIN)/python -m build --no-isolation

clean:
	rm -rf $(VENV) .cache .pytest_cache .ruff_cache .mypy_cache runs build dist
