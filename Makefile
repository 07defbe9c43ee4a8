# The commands of a developer. `make demo` and `make test` are the two that everyone needs; `make help` lists the rest.
# Environments are made on first use and remembered by stamp files, so that a second call starts at once.

PYTHON ?= python3
# What test-pythons looks for. The code is to run under each of them; pyproject.toml names the same.
PYTHONS := 3.11 3.12 3.13
VENV   := .venv
TF_ENV := .venv-tf
PEERS  := .venv-peers
CLIENTS := .venv-clients
CUDA   := .venv-cuda
DOCS   := .venv-docs
# The oldest Python that is supported with the oldest libraries, and the tests that show that they do.
OLDEST := .venv-oldest
OLDEST_EXTRAS := control examples image
OLDEST_TESTS := tests/test_tiny.py tests/unit/core tests/unit/client/session tests/cluster \
  tests/control/test_registry.py tests/control/test_sessions.py tests/control/test_models.py
# What launchers, stores and their tests run on: programs and Debian's packages with them, extras and libraries of Python. Tests
# run in $(ON_ENGINES): $(VENV), with $(ENGINES) behind it.
ENGINES := .venv-engines
ON_ENGINES := .venv-on-engines
# Each program, and Debian's packages that bring it. What is here already, from wherever it came, stays as it is.
ENGINE_PROGRAMS := ssh=openssh-client sshd=openssh-server slurmctld=slurm-wlm munged=munge rsync=rsync kubectl=kubernetes-client
ENGINE_EXTRAS := ray kubernetes kubernetes-dev s3 storage-dev
ENGINE_LIBRARIES := ray[default] aiobotocore[boto3]
ENGINE_TESTS := tests/launchers tests/storage
BENCH  :=
# How long `make soak` trains.
SECONDS := 1800
BIN    := $(VENV)/bin
PIP    := -m pip install --quiet --disable-pip-version-check
CODE   := protos core link client kernels compiler services control_api tests examples benchmarks docs/site
# Tests run beside each other, a file's tests in one process: they share fixtures. In the order of the folders, so that
# short files come last and no process waits long for another's end. One more process than cores, as many tests wait for
# processes of theirs, but no more than four.
PATHS  := tests
WORKERS = $(shell $(BIN)/python -c "import os; print(min(4, (os.cpu_count() or 1) + 1))")
TESTS  = -m pytest $(PATHS) -n $(WORKERS) --dist loadfile --no-loadscope-reorder

comma := ,
space := $(subst ,, )

.DEFAULT_GOAL := help
.PHONY: help demo test test-pythons test-thorough test-long chaos soak engines test-engines fuzz mutants promises tests-of lint docs verify-docs format openapi stubs compatibility screenshots tf-env peers-env bench bench-cuda test-cuda protos clean clients-env test-oldest dist

help: ## List the commands
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.installed-run ## Bring up a cluster on this machine and train on handwritten digits
	@$(BIN)/tenfold demo

# Hundreds of processes start from the same sources: all but the first find them compiled, whatever the shell says.
test test-thorough test-long chaos: export PYTHONDONTWRITEBYTECODE :=

test: $(VENV)/.installed-dev ## Run the tests that this machine can run, but for those that take long
	$(BIN)/python $(TESTS)

test-pythons: ## Run the tests under each Python of PYTHONS that is found here, each with an environment of its own
	@$(foreach v,$(PYTHONS),$(if $(call find_python,$(v)),$(MAKE) test VENV=.venv-$(v) PYTHON=$(call find_python,$(v)),\
	  echo "No Python $(v) here: no tests under it") && )true

test-thorough: $(VENV)/.installed-dev ## Run what `make test` leaves out because a quicker test shows the same for one case (engines: test-engines)
	TENFOLD_TEST_THOROUGH=1 $(BIN)/python $(TESTS) -m thorough $(ENGINE_TESTS:%=--ignore=%)

test-long: $(VENV)/.installed-dev ## Run those too that take long: old releases of TensorFlow, whole families against it
	TENFOLD_TEST_LONG=1 $(BIN)/python $(TESTS)

chaos: PATHS = tests/chaos
chaos: $(VENV)/.installed-dev ## Try every fault of docs/promises.md on real processes (`make test` tries each once, shortly)
	TENFOLD_TEST_LONG=1 $(BIN)/python $(TESTS) --durations=20

soak: $(VENV)/.installed-dev ## Train under random faults for half an hour (SECONDS=600 for less): nothing hangs, grows or is wrong
	$(BIN)/python benchmarks/soak_faults.py --seconds $(SECONDS)

engines: $(ENGINES)/.tried ## Install what test-engines needs: OpenSSH, Slurm, rsync, kubectl (Debian, as root); Ray and others in .venv-engines
	@PATH="$$PATH:/usr/sbin"; absent=; packages=; for each in $(ENGINE_PROGRAMS); do \
	  command -v $${each%=*} >/dev/null || { absent="$$absent $${each%=*}"; packages="$$packages $${each#*=}"; }; done; \
	if test -z "$$absent"; then exit 0; fi; \
	if test "$$(id -u)" != 0 || ! command -v apt-get >/dev/null; then \
	  echo "Not installed here:$$absent. That takes root and apt-get: tests that need them are skipped"; exit 0; fi; \
	export DEBIAN_FRONTEND=noninteractive; install="apt-get install --yes --quiet $$packages"; \
	$$install || { apt-get update --quiet && $$install; } || echo "Not installed:$$absent. Tests that need them are skipped"

# They wait more than they compute. Each engine's tests are in one process: it starts once.
test-engines: engines $(VENV)/.installed-dev ## Run the tests of launchers and stores on what `make engines` installs; test-thorough leaves them to it
	@$(BIN)/python -m venv --without-pip $(ON_ENGINES)
	@echo "import site; site.addsitedir('$(call libraries,$(VENV))'); site.addsitedir('$(call libraries,$(ENGINES))')" \
	  > "$(call libraries,$(ON_ENGINES))/engines.pth"
	TENFOLD_TEST_THOROUGH=1 $(ON_ENGINES)/bin/python -m pytest $(ENGINE_TESTS) -n 3 --dist loadgroup --durations=10

# The folder of an environment's libraries, asked when a recipe runs.
libraries = $$($(1)/bin/python -c "import sysconfig; print(sysconfig.get_path('purelib'))")

fuzz: SECONDS := 60
fuzz: $(VENV)/.installed-fuzz ## Search what reads others' bytes for faults (TARGET=records SECONDS=600; a minute for each target, else)
	$(BIN)/python tests/fuzz/run.py $(TARGET:%=--target %) --seconds $(SECONDS)

mutants: $(VENV)/.installed-dev ## Change code at random: does a test notice? (SEED=2 FILES=20 COUNT=200; FILE=worker/program.py for one file)
	$(BIN)/python tests/mutants/run.py $(SEED:%=--seed %) $(FILES:%=--files %) $(COUNT:%=--count %) $(FILE:%=--file %)

promises: $(VENV)/.installed-dev ## Break each promise of docs/promises.md on purpose: a test must turn red (PROMISE=P3 for one)
	$(BIN)/python tests/mutants/promises.py $(PROMISE:%=--promise %)

tests-of: $(VENV)/.installed-dev ## Print which tests cover a module (MODULE=worker/program.py, or --uncovered for those without)
	@$(BIN)/python tests/which.py $(MODULE)

lint: $(VENV)/.installed-dev ## Check style, types, and the English of what users read
	$(BIN)/ruff check $(CODE)
	$(BIN)/python tests/support/english.py
	$(BIN)/mypy
	$(BIN)/python tests/support/typed_programs.py

# Material's notice of MkDocs 2 is an advertisement; pyproject.toml keeps MkDocs below 2. With --quiet, --strict would see no warning.
# mkdocs empties its folder first: a build that fails leaves the former site.
docs: $(DOCS)/.installed ## Build the site of docs/ into build/site, in about a minute; a warning, such as a dead link, is an error
	@rm -rf build/site.next
	@NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --strict --site-dir build/site.next
	@rm -rf build/site && mv build/site.next build/site
	@echo "build/site/index.html"

verify-docs: $(VENV)/.installed-dev ## Type the code of tutorials and how-to pages, and note the date on which it passed (PAGE=tutorials/curl.md)
	PYTHONPATH=tests $(BIN)/python tests/support/verify_docs.py $(PAGE)

format: $(VENV)/.installed-dev ## Mend what ruff can mend by itself
	$(BIN)/ruff check --fix $(CODE)

dist: $(VENV)/.installed-dev ## Build wheel, sdist and image, and try each: names, licences, an empty environment, `tenfold demo`
	$(BIN)/python tests/support/release.py

test-oldest: $(OLDEST)/.installed ## Run tests on the oldest Python and the oldest libraries that pyproject.toml allows
	$(OLDEST)/bin/python -m pytest $(OLDEST_TESTS) -n $(WORKERS) --dist loadfile

openapi: $(VENV)/.installed-dev ## Write docs/openapi.json and the problem types in docs/rest.md
	$(BIN)/python tests/support/rest_docs.py

stubs: $(VENV)/.installed-dev ## Write what type checkers and editors see of the modules that load their names late
	$(BIN)/python tests/support/type_stubs.py

compatibility: $(VENV)/.installed-dev ## Write docs/compatibility.md: which names of TensorFlow 1.15 are here, and why others are not
	PYTHONPATH=tests $(BIN)/python tests/support/compatibility.py

screenshots: $(VENV)/.installed-dev ## Take the pictures of docs/dashboard.md anew, in a Chromium
	PYTHONPATH=tests $(BIN)/python tests/screenshots.py

tf-env: $(TF_ENV)/.installed $(TF_ENV)1.15/.tried $(TF_ENV)1.4/.tried ## Environments with TensorFlow itself, for tests/interop

# With what the machine's Python has, such as CuPy and torch. Without a package index: PIP_NO_INDEX=1 PIP_FIND_LINKS=…
GPU_ENV = $(if $(shell $(PYTHON) -c "import ctypes; print(ctypes.CDLL('libcuda.so.1'))" 2>/dev/null),$(CUDA),$(VENV))

bench-cuda: ## Measure a GPU of this machine, beside torch where it is installed (BENCH=--small in the simulator)
	@$(MAKE) --no-print-directory $(GPU_ENV)/.installed-run
	$(GPU_ENV)/bin/python benchmarks/cuda_speed.py --report benchmarks/reports $(BENCH)

test-cuda: ## Run all tests of GPUs' kernels: on a GPU where there is one, else in the simulator
	@$(MAKE) --no-print-directory $(GPU_ENV)/.installed-dev
	TENFOLD_TEST_LONG=1 $(GPU_ENV)/bin/python -m pytest tests/cuda

clients-env: $(CLIENTS)/.installed ## An environment with tritonclient and KServe's SDK, which tests ask models by

peers-env: $(PEERS)/.installed ## A third environment with torch, FBGEMM and Ray, for benchmarks/peers.py and others

bench: $(VENV)/.installed-bench ## Run the benchmarks and write a report (BENCH=--quick for a look)
	$(BIN)/python benchmarks/import_time.py
	$(BIN)/python benchmarks/bench.py --report benchmarks/reports $(BENCH)

protos: $(VENV)/.installed-dev ## Generate the Python code of the wire
	$(BIN)/python protos/generate.py

clean: ## Remove environments, caches and everything that was built
	rm -rf $(VENV) $(DOCS) $(ENGINES) $(ON_ENGINES) $(PYTHONS:%=.venv-%) $(TF_ENV) $(TF_ENV)1.15 $(TF_ENV)1.4 $(CLIENTS) $(PEERS) $(OLDEST) $(CUDA) build dist demo-out .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Tenfold needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	@echo "Creating $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-run: pyproject.toml | $(BIN)/python
	@echo "Installing Tenfold into $(VENV) (once)"
	@$(BIN)/python $(PIP) -e ".[control,examples]"
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	@echo "Installing Tenfold and its tools into $(VENV) (once)"
	@$(BIN)/python $(PIP) -e ".[dev]"
	@touch $@ $(VENV)/.installed-run

# The fuzzer has wheels for some systems and versions of CPython only, and building it takes Clang and its libFuzzer.
$(VENV)/.installed-fuzz: $(VENV)/.installed-dev
	@echo "Installing the fuzzer into $(VENV) (once)"
	@$(BIN)/python $(PIP) --only-binary atheris -e ".[fuzz]" || \
	  { echo "There is no wheel of the fuzzer, atheris, for $$($(BIN)/python -V) here: try another PYTHON (docs/fuzzing.md)"; exit 1; }
	@touch $@

# Holds none of our code, so that it may be lent to another checkout. `ray[default]` has what `ray job submit` needs;
# `aiobotocore[boto3]` names the few versions of boto3 that s3fs goes with, among which pip would search for long.
$(ENGINES)/.tried:
	@echo "Installing what engines need into $(ENGINES) (once)"
	@test -x $(ENGINES)/bin/python || $(PYTHON) -m venv $(ENGINES)
	@$(ENGINES)/bin/python -c "import sys, tomllib; extras = tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']; \
	  print(*(each for name in sys.argv[1:] for each in extras[name]), sep='\n')" $(ENGINE_EXTRAS) > $(ENGINES)/wanted.txt && \
	  $(ENGINES)/bin/python $(PIP) --only-binary ray -r $(ENGINES)/wanted.txt $(ENGINE_LIBRARIES:%='%') || \
	  echo "They cannot be installed for $$($(PYTHON) -V) here: tests that need them are skipped"
	@touch $@

$(VENV)/.installed-bench: pyproject.toml | $(BIN)/python
	@echo "Installing Tenfold and what its benchmarks need into $(VENV) (once)"
	@$(BIN)/python $(PIP) -e ".[bench]"
	@touch $@

$(CUDA)/.installed-dev: pyproject.toml
	@echo "Installing Tenfold, its tests and what a GPU needs into $(CUDA) (once)"
	@test -x $(CUDA)/bin/python || $(PYTHON) -m venv --system-site-packages $(CUDA)
	@$(CUDA)/bin/python $(PIP) -e ".[cuda-dev]"
	@touch $@

$(CUDA)/.installed-run: $(CUDA)/.installed-dev
	@touch $@

# Holds none of our code: docstrings are read from the sources.
$(DOCS)/.installed: pyproject.toml
	@echo "Installing what the site is built with into $(DOCS) (once)"
	@test -x $(DOCS)/bin/python || $(PYTHON) -m venv $(DOCS)
	@$(DOCS)/bin/python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['docs'], sep='\n')" \
	  > $(DOCS)/wanted.txt
	@$(DOCS)/bin/python $(PIP) -r $(DOCS)/wanted.txt
	@touch $@

$(OLDEST)/.installed: pyproject.toml tests/support/oldest.py | $(VENV)/.installed-dev
	@python="$(call find_python,$(firstword $(PYTHONS)))"; test -n "$$python" || { echo "No Python $(firstword $(PYTHONS)) here"; exit 1; }; \
	  echo "Installing Tenfold with the oldest libraries that it allows into $(OLDEST) (once)"; \
	  "$$python" -m venv --clear $(OLDEST)
	@$(BIN)/python tests/support/oldest.py $(OLDEST_EXTRAS) > $(OLDEST)/oldest.txt
	@$(OLDEST)/bin/python $(PIP) -e ".[$(subst $(space),$(comma),$(OLDEST_EXTRAS))]" --constraint $(OLDEST)/oldest.txt \
	  asyncpg cryptography "h2>=4.1" hypothesis psutil "pytest>=8.2" "pytest-asyncio>=0.24" "pytest-timeout>=2.3" "pytest-xdist>=3.6"
	@touch $@

# Apart from our own: each wants libraries of certain versions.
$(CLIENTS)/.installed:
	@echo "Installing clients of the Open Inference Protocol into $(CLIENTS) (once)"
	@test -x $(CLIENTS)/bin/python || $(PYTHON) -m venv $(CLIENTS)
	@$(CLIENTS)/bin/python $(PIP) "tritonclient[http]>=2.50" "kserve>=0.15"
	@touch $@

$(PEERS)/.installed:
	@echo "Installing torch, FBGEMM and Ray into $(PEERS) (once)"
	@test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	@$(PEERS)/bin/python $(PIP) "torch==2.13.*" "fbgemm-gpu-cpu==1.8.*" "ray==2.*" numpy
	@touch $@

$(TF_ENV)/.installed:
	@echo "Installing TensorFlow into $(TF_ENV) (once)"
	@test -x $(TF_ENV)/bin/python || $(PYTHON) -m venv $(TF_ENV)
	@$(TF_ENV)/bin/python $(PIP) "tensorflow-cpu==2.21.*"
	@touch $@

# On PATH, or where pyenv keeps its own.
find_python = $(firstword $(shell python$(1) -c "import sys; print(sys.executable)" 2>/dev/null) \
  $(wildcard $(HOME)/.pyenv/versions/$(1).*/bin/python))

# TensorFlow's old wheels want old Pythons, which not every machine has: then the tests that use them say so.
$(TF_ENV)1.15/.tried:
	@mkdir -p $(@D)
	@set -e; old="$(call find_python,3.7)"; if test -z "$$old"; then echo "No Python 3.7 here: no tests with TensorFlow 1.15"; else \
	  echo "Installing TensorFlow 1.15 into $(@D) (once)"; "$$old" -m venv $(@D); \
	  $(@D)/bin/python $(PIP) "tensorflow-cpu==1.15.*" "protobuf<3.21"; fi
	@touch $@

$(TF_ENV)1.4/.tried:
	@mkdir -p $(@D)
	@set -e; old="$(call find_python,3.6)"; if test -z "$$old"; then echo "No Python 3.6 here: no tests with TensorFlow 1.4"; else \
	  echo "Installing TensorFlow 1.4 into $(@D) (once)"; "$$old" -m venv $(@D); \
	  $(@D)/bin/python $(PIP) --no-deps tensorflow==1.4.0 protobuf==3.19.6 numpy==1.16.6 six wheel==0.37.1; fi
	@touch $@
