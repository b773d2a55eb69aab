# Every target creates .venv if needed. Requirements: Python 3.11 or newer, pip and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help studio install test test-all test-random test-oldest test-newest mutants soak lint types check bench bench-peers demo docs paper \
  pictures tape clean
.DEFAULT_GOAL := help

help: ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/.installed: pyproject.toml constraints.txt paper/requirements.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]' --requirement paper/requirements.txt
	@touch $@

install: $(VENV)/.installed ## create .venv with everything that development needs

# Two test processes with one thread each: with more threads than cores, small matrices are slow.
test: export OPENBLAS_NUM_THREADS := 1
test: export OMP_NUM_THREADS := 1
test: install ## run the tests of the library that take five minutes, with the same random examples every time
	$(BIN)/python -m pytest --numprocesses 2 -m "not slow" src tests --ignore=tests/paper --ignore=tests/benchmarks

test-all: export OPENBLAS_NUM_THREADS := 1
test-all: export OMP_NUM_THREADS := 1
test-all: install ## run all tests: also those of the paper, in browsers, with every framework, and in several processes
	$(BIN)/python -m pytest --numprocesses 2

test-random: export OPENBLAS_NUM_THREADS := 1
test-random: export OMP_NUM_THREADS := 1
test-random: install ## run the tests with new random examples in the property tests
	$(BIN)/python -m pytest --numprocesses 2 --hypothesis-profile random

mutants: export OPENBLAS_NUM_THREADS := 1
mutants: export OMP_NUM_THREADS := 1
mutants: install ## change the core in small ways, and count the changes that the tests notice (an hour)
	nice $(BIN)/python -m robustness.mutants $(ARGS)

soak: export OPENBLAS_NUM_THREADS := 1
soak: export OMP_NUM_THREADS := 1
soak: install ## attack the readers, long computations, the store and the options, and count what is lost (an hour)
	nice $(BIN)/python -m robustness.soak $(ARGS)

# The core and the Hessian with the oldest and the newest versions that pyproject.toml allows.
CORE_TESTS := tests/spectrum tests/schedules tests/theory tests/forecast tests/planning tests/hessian
OLDEST := .venv-oldest
NEWEST := .venv-newest
test-oldest test-newest: export OPENBLAS_NUM_THREADS := 1
test-oldest test-newest: export OMP_NUM_THREADS := 1

$(OLDEST)/.installed: pyproject.toml constraints-oldest.txt
	$(PYTHON) -m venv $(OLDEST)
	PIP_CONSTRAINT=$(CURDIR)/constraints-oldest.txt $(OLDEST)/bin/python -m pip install --quiet --editable '.[torch,plot]' pytest hypothesis
	@touch $@

test-oldest: $(OLDEST)/.installed ## run the tests of the core with the oldest dependencies
	$(OLDEST)/bin/python -m pytest $(CORE_TESTS)

# torch stays at the version of constraints.txt: newer ones install gigabytes of CUDA packages.
$(NEWEST)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(NEWEST)
	grep '^torch==' constraints.txt > $(NEWEST)/constraints.txt
	PIP_CONSTRAINT=$(CURDIR)/$(NEWEST)/constraints.txt $(NEWEST)/bin/python -m pip install --quiet --upgrade --editable '.[torch,plot]' pytest hypothesis
	@touch $@

test-newest: $(NEWEST)/.installed ## run the tests of the core with the newest dependencies
	$(NEWEST)/bin/python -m pytest $(CORE_TESTS)

lint: install ## check lint and formatting with ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: install ## check types with mypy --strict
	$(BIN)/mypy --strict src paper

check: lint types ## run everything that CI runs: lint, types, all tests
	$(MAKE) test-all

$(VENV)/.demo: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[demo]'
	@touch $@

demo: $(VENV)/.demo ## measure a small network, get a recommended schedule, and race it against the usual ones
	$(BIN)/eigencurve demo --output demo.html --force

$(VENV)/.paper: pyproject.toml constraints.txt paper/requirements.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[plot,torch]' --requirement paper/requirements.txt
	@touch $@

paper: $(VENV)/.paper ## make a table of the paper: make paper NAME=ridge ARGS="--output results"; without NAME, list them
	$(BIN)/python -m paper $(NAME) $(ARGS)

$(VENV)/.studio: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[studio]'
	@touch $@

studio: $(VENV)/.studio ## open the interactive page on this machine
	$(BIN)/eigencurve studio

$(VENV)/.bench: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable '.[dev,torch]'
	@touch $@

bench: export OPENBLAS_NUM_THREADS := 1
bench: export OMP_NUM_THREADS := 1
bench: $(VENV)/.bench ## run the benchmarks and write results/benchmarks.md (half an hour on a quiet machine)
	$(BIN)/python -m benchmarks
	$(MAKE) bench-peers

PEERS := .venv-peers
$(PEERS)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --editable '.[torch]' einops einconv opt_einsum linear_operator unfoldNd tqdm
	@# without their dependencies: one of them requires torchvision, which is not needed
	$(PEERS)/bin/python -m pip install --quiet --no-deps pyhessian==0.1 hessian-eigenthings==1.0.0a4 \
	  curvlinops-for-pytorch==3.0.1 backpack-for-pytorch==1.7.1
	@touch $@

bench-peers: export OPENBLAS_NUM_THREADS := 1
bench-peers: export OMP_NUM_THREADS := 1
bench-peers: $(PEERS)/.installed ## compare with other packages and write results/peers.md
	$(PEERS)/bin/python -m benchmarks --peers

$(VENV)/.docs: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[demo,docs]'
	@touch $@

docs: export NO_MKDOCS_2_WARNING := 1
docs: $(VENV)/.docs ## build the documentation site in site/
	$(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html; with search: $(BIN)/mkdocs serve"

pictures: $(VENV)/.docs ## draw the figures of the documentation
	$(BIN)/python docs/_make/pictures.py

tape: ## record the command-line walkthroughs in a fresh clone (minutes)
	$(PYTHON) -m docs._make.tape

clean: ## remove .venv and caches
	rm -rf $(VENV) $(PEERS) $(OLDEST) $(NEWEST) .mutants.jsonl .waiting .pytest_cache .ruff_cache .mypy_cache .hypothesis dist site
