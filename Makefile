# Every target makes and fills .venv by itself: Python 3.11 or newer, pip and make are all it takes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help studio install test test-random lint types check bench bench-peers demo docs pictures tape clean
.DEFAULT_GOAL := help

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

install: $(VENV)/.installed ## make .venv and install the project with all that its tests need

# Two test processes, one thread each: more threads than cores make small matrices slow.
test: export OPENBLAS_NUM_THREADS := 1
test: export OMP_NUM_THREADS := 1
test: install ## run the tests, doctests included; the same random examples every time
	$(BIN)/python -m pytest --numprocesses 2

test-random: export OPENBLAS_NUM_THREADS := 1
test-random: export OMP_NUM_THREADS := 1
test-random: install ## run the tests with new random examples in the property tests
	$(BIN)/python -m pytest --numprocesses 2 --hypothesis-profile random

lint: install ## ruff: lint and format, without changing anything
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: install ## mypy --strict on src
	$(BIN)/mypy --strict src

check: lint types ## all that CI runs: lint, types, tests
	$(MAKE) test

$(VENV)/.demo: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[demo]'
	@touch $@

demo: $(VENV)/.demo ## measure a small network's spectrum and race its schedule on handwritten digits
	$(BIN)/eigencurve reproduce demo --output demo-output

$(VENV)/.studio: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[studio]'
	@touch $@

studio: $(VENV)/.studio ## the interactive page, on this machine alone
	$(BIN)/eigencurve studio

$(VENV)/.bench: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable '.[dev,torch]'
	@touch $@

bench: $(VENV)/.bench ## time the core against its transcriptions and against torch; prints ratios
	$(BIN)/python -m benchmarks.core
	$(BIN)/python -m benchmarks.theory
	$(BIN)/python -m benchmarks.ridge
	$(BIN)/python -m benchmarks.sharpening
	$(BIN)/python -m benchmarks.studio
	$(BIN)/python -m benchmarks.reading
	$(MAKE) bench-peers

PEERS := .venv-peers
$(PEERS)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --editable '.[torch]' einops einconv opt_einsum linear_operator unfoldNd tqdm
	@# without their dependencies: one asks for torchvision, which nothing here needs
	$(PEERS)/bin/python -m pip install --quiet --no-deps pyhessian==0.1 hessian-eigenthings==1.0.0a4 \
	  curvlinops-for-pytorch==3.0.1 backpack-for-pytorch==1.7.1
	@touch $@

bench-peers: $(PEERS)/.installed ## Hessian products and density runs beside the peers', in their own environment
	$(PEERS)/bin/python -m benchmarks.peers

$(VENV)/.docs: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[demo,docs]'
	@touch $@

docs: export NO_MKDOCS_2_WARNING := 1
docs: $(VENV)/.docs ## build the documentation into site/, with warnings as errors
	$(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html; to look at it with search: $(BIN)/mkdocs serve"

pictures: $(VENV)/.docs ## draw the documentation's pictures anew
	$(BIN)/python docs/_make/pictures.py

tape: ## record the tape of a first use anew: a fresh clone and environment, minutes
	$(PYTHON) docs/_make/tape.py

clean: ## remove .venv and caches
	rm -rf $(VENV) $(PEERS) .pytest_cache .ruff_cache .mypy_cache .hypothesis dist site
