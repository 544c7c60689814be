# `make demo` and `make test` do everything from a fresh clone: environment, installation, run.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/installed

.PHONY: app attack demo docs test test-extended test-slow lint format wheel clean

demo: $(INSTALLED)
	$(BIN)/physvision demo --out out/demo

app: $(INSTALLED)
	$(BIN)/physvision open

docs: $(INSTALLED)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir out/docs

test: $(INSTALLED)
	@echo "Compiling kernels, once on this machine."
	$(BIN)/python tests/compile_kernels.py
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal

# What `make test` leaves out: kernels that are compiled on demand, and tests of many seconds.
test-extended: $(INSTALLED)
	$(BIN)/python tests/compile_kernels.py --on-demand
	$(BIN)/python -m pytest -m 'extended and not slow and not gpu' --numprocesses auto --dist worksteal

test-slow: $(INSTALLED)
	$(BIN)/python -m pytest -m slow --timeout 3600

# Damaged files of every kind, which no reader may run, hang on, or answer with an error without a type.
attack: $(INSTALLED)
	$(BIN)/python benchmarks/attack.py $(ATTACK)

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(BIN)/python tools/language.py

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

wheel: $(INSTALLED)
	$(BIN)/python -m pip wheel --no-deps --wheel-dir dist .

$(INSTALLED): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	@echo "Installing physvision and what it needs into $(VENV); a minute or two."
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) dist out .pytest_cache .ruff_cache .import_linter_cache
