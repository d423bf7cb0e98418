# Needs python3 (3.11 or newer), make and a package index. It installs everything else.

# The system's python3 if it is new enough and can create virtual environments, otherwise the first python3 on the PATH.
# The Python of Linux distributions and of our image is built with profile-guided optimisation. The Python of a version
# manager is mostly built without it, and then needs a seventh more CPU time for an order. Set PYTHON=python3.13 to use
# a different one.
PYTHON ?= $(shell /usr/bin/python3 -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
  && echo /usr/bin/python3 || echo python3)
VENV ?= .venv
BIN := $(VENV)/bin
TRANSLATED := $(patsubst %.po,%.mo,$(wildcard config/locale/*/LC_MESSAGES/django.po))
INSTALLED := $(VENV)/.installed $(TRANSLATED)
# If make ends first, for example because the terminal closes, this ends the program that make runs.
TIED := $(shell command -v setpriv >/dev/null 2>&1 && echo setpriv --pdeathsig TERM)
SUDO := $(shell [ "$$(id -u)" = 0 ] || command -v sudo)
# The programs that the tests start, except Python. Each entry is a command or a file, and the Debian package that
# contains it.
TOOLS := $${CHROMIUM:-chromium-headless-shell}:chromium-headless-shell php:php-cli go:golang-go ruby:ruby faketime:faketime node:nodejs npm:npm openssl:openssl curl:curl
MISSING = for tool in $(TOOLS); do \
  command -v "$${tool%:*}" >/dev/null 2>&1 || [ -e "$${tool%:*}" ] || printf ' %s' "$${tool\#\#*:}"; done
# Tests that `make test-full` runs again through PgBouncer in transaction mode. Their code moves money, reports it, or
# waits for other processes.
POOLED := tests/checkout tests/payments tests/webhooks tests/hosted_page tests/races \
  $(patsubst %,tests/journeys/test_%.py,first_order payments processes webhooks)
FOREIGN := tests/webhooks/foreign
FOREIGN_INSTALLED := $(FOREIGN)/node_modules/.installed
LINTERS := tests/config/openapi/linters
LINTERS_INSTALLED := $(LINTERS)/node_modules/.installed
GENERATED := tests/journeys/generated
GENERATED_INSTALLED := $(GENERATED)/node_modules/.installed
LIGHTHOUSE := tests/browser/lighthouse
LIGHTHOUSE_INSTALLED := $(LIGHTHOUSE)/node_modules/.installed

LOCK := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header pyproject.toml

.PHONY: help run install static env pin sbom dist release quick test test-full test-newest nightly chaos histories models mutants drill bench bench-webhooks screenshots messages runbook pages protocols variables schema rules check lock tools packages

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1	/p' Makefile

run: $(INSTALLED) ## Start the whole service on http://localhost:8000 (PORT, SHOP_PORT); Ctrl-C ends it
	@$(TIED) $(BIN)/python -m config.local.run

# Write bytecode even if a variable of the shell forbids it, because many processes load the same modules.
quick test test-full test-newest nightly chaos histories: export PYTHONDONTWRITEBYTECODE :=

test: $(INSTALLED) tools ## Run the tests on real engines (ARGS="-k capture" for some of them)
	@$(BIN)/python -m pytest -m "not long" -n 3 $(ARGS)

quick: $(INSTALLED) tools ## Run the faster half of the tests, in a minute (before the first `make test`: the tests without a database)
	@$(BIN)/python -m pytest -m "not long" --faster-half -n 2 --durations=0 --durations-min=9 $(ARGS)

# Compilers and libraries for the generated API clients.
CLIENTS := java:default-jre-headless go:golang-go /usr/share/gocode/src/golang.org/x/oauth2:golang-golang-x-oauth2-dev \
  /usr/share/php/GuzzleHttp:php-guzzlehttp-guzzle /usr/share/doc/php-curl:php-curl \
  /usr/share/doc/php-mbstring:php-mbstring ruby:ruby /usr/share/doc/ruby-typhoeus:ruby-typhoeus
test-full nightly: TOOLS += $(CLIENTS)
test-full nightly: TOOLS += $${CHROMIUM:-chromium}:chromium nginx:nginx-light pgbouncer:pgbouncer /usr/bin/python3:python3-venv ip:iproute2 unshare:util-linux prometheus:prometheus amtool:prometheus-alertmanager systemd-analyze:systemd systemd-nspawn:systemd-container debootstrap:debootstrap envsubst:gettext-base docker-compose:docker-compose
test-full: $(INSTALLED) tools $(LIGHTHOUSE_INSTALLED) $(GENERATED_INSTALLED) ## Run all tests, including the long ones
	@$(BIN)/python -m pytest -n 3 $(ARGS)
	@[ -n "$(ARGS)" ] || THROUGH_PGBOUNCER=1 $(BIN)/python -m pytest -m "not long or journey" -n 3 $(POOLED)

# Deprecation warnings of the newest Django are only printed, because the locked version might lack the replacement.
# Tests that call make also use this environment.
test-newest: export VENV := .venv-newest
test-newest: tools ## Run the tests of `make test` on the newest Django; needs Python 3.12 or newer (PYTHON=python3.13)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 12))' || { \
	  echo "The newest Django needs Python 3.12 or newer: make test-newest PYTHON=python3.13" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade django
	@touch $(VENV)/.installed
	@$(BIN)/python -m pytest -m "not long" -n 3 -W default::DeprecationWarning -W default::PendingDeprecationWarning $(ARGS)

nightly: $(INSTALLED) tools $(LIGHTHOUSE_INSTALLED) $(GENERATED_INSTALLED) ## Run the long tests; continue an interrupted run of the same commit
	@$(BIN)/python -m pytest -n 3 -m long -p tests.nightly $(ARGS) || [ $$? = 5 ] # 5 means that all tests have passed before

chaos: $(INSTALLED) ## Cause faults in every part and check that the service recovers (SEEDS=30; FAULT=killed for some; FIRST_SEED=7)
	@$(BIN)/python -m pytest tests/chaos/test_chaos.py tests/chaos/test_slow_peers.py -k "not thirty_seeds" -s $(ARGS)

histories: $(INSTALLED) ## Record every call under each fault, and judge whether reads are consistent (FIRST_SEED=7)
	@$(BIN)/python -m pytest tests/chaos/test_histories.py -s $(ARGS)

models: $(INSTALLED) ## Check the models of the protocols and of money, and show how each broken variant fails (ARGS=large)
	@$(BIN)/python -m tests.model $(ARGS)

mutants: $(INSTALLED) ## Change single lines of the modules of money and protocols, and check that their tests fail; continues where it stopped (ARGS="webhooks --at-most 50")
	@$(BIN)/python -m tests.mutants $(ARGS)

drill: export DRILL_SECONDS ?= 300
drill: $(INSTALLED) ## Lose the database's machine under load, then restore and repair the database (DRILL_SECONDS=60)
	@$(BIN)/python -m pytest -n 0 -s tests/journeys/test_drill.py $(ARGS)

bench: TOOLS := nginx:nginx-light
bench: $(INSTALLED) packages ## Measure the API against a bare view (ARGS="requests lag"; SCALE=0.1 to try it, SIZE=3000000 for `size`)
	@$(BIN)/python -m tests.bench.api $(ARGS)

bench-webhooks: $(INSTALLED) ## Measure the webhooks against TLS receivers (ARGS="latency backlog"; SCALE=0.05 to try it)
	@$(BIN)/python -m tests.bench.webhooks $(ARGS)

screenshots: $(INSTALLED) tools ## Take screenshots of every page and state, under .local/screenshots (ARGS="-k mate" for some)
	@$(BIN)/python -m pytest tests/browser/test_gallery.py $(ARGS)

messages: $(INSTALLED) ## Collect the texts of payers' pages into the catalogues of their translations
	@$(BIN)/python -m tests.house.messages

runbook: $(INSTALLED) ## Write the tables of the discrepancy runbook in docs/operate.md from the table of kinds
	@$(BIN)/python -m tests.house.runbook

pages: $(INSTALLED) ## Write docs/pages.md from the table of what the payers' pages say
	@$(BIN)/python -m tests.house.pages

protocols: $(INSTALLED) ## Write docs/protocols.md from the models of the protocols
	@$(BIN)/python -m tests.model.protocols.page

variables: $(INSTALLED) ## Write .env.example and the table of settings in docs/operate.md from config/variables
	@$(BIN)/python -m tests.house.variables_page

schema: $(INSTALLED) ## Write docs/schema.sql from the migrations
	@$(BIN)/python -m tests.house.schema

rules: $(INSTALLED) ## Print each rule of docs/contract.md with its code and tests (ARGS="capture." for some of them)
	@$(BIN)/python -m tests.house.rules $(ARGS)

# Uses the first python3 on the PATH, because only this one has the same path in both stages of our image.
install: ## Install production's packages into .venv
	@python3 -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-cache-dir --require-hashes -r requirements.lock

static: export ENVIRONMENT := sandbox
static: ## Collect and compress the static files, with hashed names, and compile the translations and modules
	@$(BIN)/pybabel --quiet compile --directory config/locale --domain django
	@$(BIN)/python manage.py collectstatic --no-input --clear --verbosity 0
	@$(BIN)/python -m compileall -q checkout config hosted_page payments portal webhooks

env: ## Write a new installation's variables, with new keys, and a first certificate (HOST=checkout.example)
	@[ -n "$(HOST)" ] || { echo "Say where it will be: make env HOST=checkout.example" >&2; exit 1; }
	@python3 config/deploy/make_env.py $(HOST)

pin: ## Pull the images of nginx, PostgreSQL and Valkey, and write their digests into .env, for compose.yaml
	@python3 config/deploy/pin_images.py

sbom: SBOM ?= sbom.json
sbom: $(INSTALLED) ## Write sbom.json, the list of the packages that production runs (CycloneDX)
	@$(BIN)/python -m tests.release.sbom $(SBOM)

dist: $(INSTALLED) ## Build the wheel and the source archive of this version under dist/, with sbom and checksums
	@$(BIN)/python -m tests.release.building dist

release: $(INSTALLED) ## Prepare a release: check, set the version, freeze migrations, build, print the commands (VERSION=1.1.0)
	@$(BIN)/python -m tests.release "$(VERSION)"

check: export ENVIRONMENT := production
check static: export BASE_URL := https://checkout.example
check static: export ALLOWED_HOSTS := checkout.example
check static: export SECRET_KEY := nobody-signs-with-this-key-0123456789-abcdefghijklm
check static: export FIELD_KEYS := AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=
check static: export DATABASE_URL := postgresql://checkout@127.0.0.1:1/checkout
check static: export REDIS_URL := redis://127.0.0.1:1/0
check: export DATABASE_POOL := 0
check: export PROVIDER := payments.providers.stripe.adapter.StripeProvider
check: export STRIPE_SECRET_KEY := sk_live_nobody
check: export STRIPE_PUBLISHABLE_KEY := pk_live_nobody
check: export STRIPE_WEBHOOK_SECRET := whsec_nobody
check: export SMS_SENDER := adapter.of.production.Sender
check: export ERASURES_FILE := /var/lib/checkout/kept/erasures
check: $(INSTALLED) $(LINTERS_INSTALLED) ## Check format, lint, types, layers, rules against tests, English, migrations, production settings, the API's document
	@! git grep -nE '^(<{7}|>{7}) ' # conflict markers of a merge
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy .
	$(BIN)/lint-imports
	$(BIN)/python -m tests.house.rules --check
	$(BIN)/python -m tests.house.house
	$(BIN)/python -m tests.house.prose
	$(BIN)/python -W ignore::RuntimeWarning manage.py makemigrations --check --dry-run
	$(BIN)/python -m tests.house.schema --check
	$(BIN)/python -m tests.release.frozen
	$(BIN)/python manage.py check --deploy --fail-level WARNING
	$(BIN)/python -m tests.config.openapi.linters

lock: ## Choose new versions: requirements.lock is for production, requirements-dev.lock adds those for the tests
	$(LOCK) --extra twilio --extra sns --output-file requirements.lock
	$(LOCK) --all-extras --constraints requirements.lock --output-file requirements-dev.lock

tools: packages $(FOREIGN_INSTALLED)

packages:
	@missing=$$($(MISSING)); [ -z "$$missing" ] || { \
	  command -v apt-get >/dev/null 2>&1 && { [ -n "$(SUDO)" ] || [ "$$(id -u)" = 0 ]; } || { \
	    echo "The tests need Debian's packages$$missing (or CHROMIUM set to a browser of yours)." >&2; exit 1; }; \
	  $(SUDO) apt-get update -qq && \
	  $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing; }

$(FOREIGN_INSTALLED) $(GENERATED_INSTALLED) $(LIGHTHOUSE_INSTALLED) $(LINTERS_INSTALLED): %/node_modules/.installed: %/package-lock.json | packages
	@cd $* && npm ci --loglevel=error
	@touch $@

%/LC_MESSAGES/django.mo: %/LC_MESSAGES/django.po | $(VENV)/.installed
	@$(BIN)/pybabel --quiet compile --input-file $< --output-file $@ --locale $(notdir $*)

$(VENV)/.installed: requirements-dev.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "make needs python3, version 3.11 or newer, on the PATH." >&2; exit 1; }
	@echo "Installing requirements-dev.lock into $(VENV): a minute the first time."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@touch $@
