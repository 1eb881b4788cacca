.DEFAULT_GOAL := help
.PHONY: help setup demo screens quick test test-real test-slow check audit bench wheel-test clean

# Thousands of processes of the tests would compile the modules that they load, each for itself;
# and a start-up figure of a benchmark means something only with bytecode that is there.
unexport PYTHONDONTWRITEBYTECODE

READY := .venv/.ready
DEMO := .venv/.demo

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

setup: $(READY) ## make .venv with the package and its tools

$(READY): pyproject.toml constraints.txt scripts/setup
	@scripts/setup

$(DEMO): pyproject.toml constraints.txt scripts/setup
	@scripts/setup --demo

demo: $(DEMO) ## run the whole path on a scratch repository (ARGS=--keep keeps it)
	@PYTHONPATH="$(CURDIR)/src" .venv/bin/python -m fleet demo $(ARGS)

screens: $(READY) ## take the screenshots of the dashboard that the documentation shows
	@scripts/browser >/dev/null
	@.venv/bin/python scripts/screens.py $(ARGS)

quick: $(READY) ## the gates and unit tests of what changed since main, in half a minute
	@scripts/quick

test: $(READY) ## run the tests that need nothing but Python, git and tmux (ARGS go to pytest)
	@scripts/test $(ARGS)

test-real: $(READY) ## run the tests against the real programs and servers
	@scripts/test-real $(ARGS)

test-slow: $(READY) ## run the long forms: thousands of crashes, 10,000 tasks, three machines with faults
	@.venv/bin/python -m pytest -n auto -m slow $(ARGS)

check: $(READY) ## format, lint, types, import contracts, shell, spelling, docs tests
	@scripts/check

audit: $(READY) ## bandit over the source, pip-audit over the pinned packages
	@.venv/bin/python scripts/audit.py

bench: $(READY) ## print every figure beside its bar
	@scripts/bench $(ARGS)

wheel-test: $(READY) ## build the wheel, install it into an empty environment, run its demo offline
	@scripts/wheel-test

clean: ## remove what the other targets made
	rm -rf .venv .cache build dist htmlcov .coverage .coverage.* .hypothesis .import_linter_cache
	rm -rf .mypy_cache .pytest_cache .ruff_cache
	find src tests bench scripts -name __pycache__ -type d -prune -exec rm -rf {} +
