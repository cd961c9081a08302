# Everything a person or a CI machine runs. `make demo` needs Python 3.10 or newer with venv and
# pip, and nothing else: no Slurm, no torch, no root.
#
#   make demo     render and train configs/jobs/quickstart.yaml on this machine
#   make setup    everything development needs, in .venv
#   make check    ruff, mypy, the layers, shellcheck
#   make quick    the tests that start no process, load no torch and need no network: a minute
#   make test     all tests, on a real Slurm (installed first where that is possible)
#   make test-oldest  what needs neither Slurm nor torch, with the oldest dependencies allowed
#   make matrix   what is said about Slurm, on each version that Debian has and this machine doesn't
#   make chaos    the tests of tests/chaos in their long form, half an hour each
#   make golden   write expected scripts, and what lint says, again; review the diff
#   make docs     write pages and manual again, build the site in build/site; review the diff
#   make bench    the benchmarks
#   make zipapp   build/slurmgen.pyz: one file that runs on a login node without pip
#   make clean    remove what the above made
#
# PYTHON=python3.12      another interpreter       VENV=/tmp/venv     another place
# TORCH_INDEX=URL        another build of torch, e.g. https://download.pytorch.org/whl/cu128
# VERSIONS="24.11"      a matrix of fewer          WHOLE=1         of all of tests/slurm, hours
# PYTEST_ARGS="-k plan"  more for pytest           JOBS=4             test processes

PYTHON ?= python3
VENV ?= .venv
JOBS ?= 2
PYTEST_ARGS ?=
JOB ?= configs/jobs/quickstart.yaml

export PYTHON VENV JOBS

BIN := $(VENV)/bin
INPUTS := pyproject.toml constraints.txt scripts/setup

.DEFAULT_GOAL := help
.PHONY: help demo setup check quick test test-oldest matrix chaos golden docs bench zipapp clean

help:
	@sed -n 's/^#   make/  make/p' Makefile

# A file, so that the installation is made once and again when what it depends on changes.
$(VENV)/.installed-run: $(INPUTS)
	@scripts/setup run

$(VENV)/.installed-dev: $(INPUTS)
	@scripts/setup dev

demo: $(VENV)/.installed-run
	@echo "# slurmgen render $(JOB)"
	@$(BIN)/slurmgen render $(JOB)
	@echo
	@echo "# slurmgen run $(JOB)"
	@$(BIN)/slurmgen run $(JOB)

setup: $(VENV)/.installed-dev

check: $(VENV)/.installed-dev
	@scripts/check

quick: $(VENV)/.installed-dev
	@scripts/test-quick $(PYTEST_ARGS)

test:
	@scripts/test --announce
	@$(MAKE) --no-print-directory $(VENV)/.installed-dev
	@scripts/slurm-packages
	@scripts/tool-packages
	@scripts/test $(PYTEST_ARGS)

test-oldest:
	@scripts/test-oldest $(PYTEST_ARGS)

matrix: $(VENV)/.installed-dev
	@scripts/slurm-packages
	@scripts/matrix $(PYTEST_ARGS)

chaos: $(VENV)/.installed-dev
	@scripts/slurm-packages
	@scripts/chaos $(PYTEST_ARGS)

golden: $(VENV)/.installed-dev
	@$(BIN)/python -m pytest tests/golden tests/lint/test_said.py --update-golden $(PYTEST_ARGS)

docs: $(VENV)/.installed-dev
	@scripts/docs $(PYTEST_ARGS)

bench: $(VENV)/.installed-dev
	@set -e; for file in $(wildcard benchmarks/*.py); do \
	  echo "# $$file"; $(BIN)/python $$file; \
	done

zipapp: $(VENV)/.installed-dev
	@scripts/zipapp

clean:
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -not -path './.venv/*' -prune -exec rm -rf {} +
	if [ -f $(VENV)/pyvenv.cfg ]; then rm -rf $(VENV); fi
	if [ -f $(VENV)-oldest/pyvenv.cfg ]; then rm -rf $(VENV)-oldest; fi
