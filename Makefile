# SPDX-License-Identifier: GPL-3.0-or-later
# The few commands of this project. `make` alone lists them.

PYTHON3 := python3
PYTHON := .venv/bin/python
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export ANSIBLE_COLLECTIONS_PATH := $(CURDIR)/.ansible/collections
export PYTHONDONTWRITEBYTECODE := 1

.PHONY: help
help:
	@$(PYTHON3) -m dev.help

##@ Use it
.PHONY: demo audit tune restore
demo: ## Boot an EC2-like host, audit it, tune it, measure, restore it
	@$(PYTHON3) -m dev.setup --no-tests
	@$(PYTHON) -m dev.demo $(ARGS)

audit: controller ## What your hosts leave on the table: make audit INVENTORY=hosts.yml
	$(call playbook)

tune: controller ## Tune your hosts: make tune INVENTORY=hosts.yml
	$(call playbook)

restore: controller ## Take it all back: make restore INVENTORY=hosts.yml
	$(call playbook)

.PHONY: controller
controller:
	@$(PYTHON3) -m dev.setup --no-lab --no-tests

define playbook
	@test -n "$(INVENTORY)" || { echo "Name your hosts: make $@ INVENTORY=hosts.yml" >&2; exit 2; }
	@ansible-playbook --inventory "$(INVENTORY)" nearmetal.ec2.$@ $(ARGS)
endef

##@ Work on it
.PHONY: setup tools generate test test-all test-lab test-ec2 lint unit mutate bench docs build release lock clean
setup: ## System packages, virtual environments from the locks (fast when done)
	@$(PYTHON3) -m dev.setup

tools:
	@$(PYTHON3) -m dev.setup --no-lab

test: setup ## What a change breaks most often, with set-up: 20 minutes; closes with the counts
	@$(PYTHON) -m dev.test --quick

test-all: setup ## Everything that CI runs, with set-up: 50 minutes; closes with the counts
	@$(PYTHON) -m dev.test

test-lab: setup ## The lab's part of everything, with the power cut at every system call of a run: hours
	@$(PYTHON) -m lab doctor --install --architecture arm64
	@NEARMETAL_POWER_CUTS=all $(PYTHON) -m dev.test lab molecule long mutants

test-ec2: tools ## On real AMIs, for money, with NEARMETAL_EC2=FILE; ARGS=destroy or ARGS=left
	@$(PYTHON) -m dev.real_amis $(ARGS)

generate: tools ## Roles, their README tables and RETURN blocks, from the modules' documentation
	@$(PYTHON) -m dev.generate

lint: tools ## Linters, ansible-test sanity and the project's own gates
	@$(PYTHON) -m dev.test lint gates sanity

unit: tools ## The tests that need no host, on every supported Python here
	@$(PYTHON) -m dev.test target between random controller newest

mutate: tools ## Seed faults one at a time: the tests must catch each
	@$(PYTHON) -m dev.mutate $(ARGS)

bench: setup ## Cost of a no-op run against a ping-only playbook
	@$(PYTHON) -m dev.bench $(ARGS)

docs: tools ## The documentation site, into build/docs
	@$(PYTHON) -m dev.docs

build: tools ## The collection as a tarball, checked by galaxy-importer
	@$(PYTHON) -m dev.build

release: tools ## Changelog, tarball that was tried out, commit and tag: make release VERSION=1.2.3
	@test -n "$(VERSION)" || { echo "Name the version: make release VERSION=1.2.3" >&2; exit 2; }
	@$(PYTHON) -m dev.release "$(VERSION)"

lock: tools ## Choose versions again and write the locks in requirements/
	@$(PYTHON) -m dev.lock

clean: ## Remove what these commands made in the working copy
	@rm -rf build .ansible .cache .venv .venv-* .mypy_cache .ruff_cache .pytest_cache .hypothesis tests/output
