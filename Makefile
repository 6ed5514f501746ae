# make demo     one command to see what kvsim does: installs it and compares allocators on real traffic, twice
# make test     installs what the tests need and runs them (10 to 13 minutes on 2 shared cores)
# make test-all the slow ones too, and laws on examples that are others each time
# make bench    what a run costs: CPU, memory and start-up, against the budgets
# make cuda-check  the CUDA harness without a GPU: emulated, with planted bugs, sanitized, under nvcc (under 5 minutes)
# make gpu-session the same program on a GPU: checks, sanitizers, quick, full, fit (under 8 minutes)
# make check    lint, types, import contracts
# make reports  makes the committed reports again, under the versions of reports/constraints.txt (under 4 minutes)
# make reports-twice  makes them twice elsewhere: equal to each other, and to what is committed
# make fleet-at-scale  makes reports/fleet-at-scale again: three times a million requests, half an hour of CPU time and more
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
WORKERS ?= auto

.PHONY: demo test test-all bench cuda-check gpu-session check lint types contracts reports reports-twice fleet-at-scale clean

demo: $(VENV)/.installed
	$(BIN)/kvsim compare scenarios/azure-conversation.yaml
	$(BIN)/kvsim compare scenarios/agents.yaml

test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -n $(WORKERS) -m "not slow and not budget and not cuda"
	$(BIN)/python -m pytest -m "budget and not slow" tests/budgets

test-all: $(VENV)/.installed-dev
	KVSIM_EXPLORE=1 $(BIN)/python -m pytest -n $(WORKERS) -m "not budget"
	$(BIN)/python -m pytest -m budget

bench: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -q -s tests/budgets

# What needs nvcc or cuobjdump skips, and says so, where neither is there nor its wheels can be had.
cuda-check: $(VENV)/.installed-dev
	@command -v nvcc >/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[cuda]" \
		|| echo "cuda-check: the wheels of the cuda extra cannot be had; what needs nvcc skips"
	@command -v cuobjdump >/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[cuda-check]" \
		|| echo "cuda-check: the wheels of cuobjdump cannot be had; what reads machine code skips"
	$(BIN)/python -m pytest -n 2 --dist loadfile -m cuda tests/microbench

gpu-session: $(VENV)/.installed
	PATH=$(abspath $(BIN)):$$PATH kvsim/microbench/gpu_session.sh

check: lint types contracts

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-dev
	$(BIN)/mypy

contracts: $(VENV)/.installed-dev
	$(BIN)/lint-imports

reports: $(VENV)-reports/.installed
	$(VENV)-reports/bin/python reports/rebuild.py
	$(VENV)-reports/bin/kvsim validate --envelope reports/validity/README.md

# Twice into folders of their own, which must be equal, and equal to what is committed.
reports-twice: $(VENV)-reports/.installed
	$(VENV)-reports/bin/python reports/rebuild.py --to runs/reports-once
	$(VENV)-reports/bin/python reports/rebuild.py --to runs/reports-twice
	diff -r runs/reports-once runs/reports-twice
	for made in runs/reports-once/*; do diff -r $$made reports/$$(basename $$made) || exit 1; done

fleet-at-scale: $(VENV)/.installed-dev
	$(BIN)/python reports/fleet-at-scale/rerun.py

clean:
	rm -rf $(VENV) $(VENV)-reports runs

$(VENV)/.created:
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.installed: $(VENV)/.created pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/.installed-dev: $(VENV)/.created pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	touch $@ $(VENV)/.installed

$(VENV)-reports/.installed: reports/constraints.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)-reports
	$(VENV)-reports/bin/python -m pip install --quiet --disable-pip-version-check -c reports/constraints.txt -e .
	touch $@
