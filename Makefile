# Slipway. `make help` explains every target.
SHELL := /bin/bash
.DEFAULT_GOAL := help

export GOFLAGS := -buildvcs=false
export GOTOOLCHAIN := local
BIN := $(CURDIR)/.cache/bin

# Settings of `make run`.
ONCE ?=
SAMPLE ?= vitistack
DATA ?=
IDLE ?= 30s
PORT ?=
DISABLE ?=
CLUSTERS ?= 1
WORKLOADS ?=
RECORD ?=

.PHONY: help
help: ## Explain the targets
	@echo "Slipway: KubeVirt platforms run by stateless functions on Knative."
	@echo
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo "  make run   settings: ONCE=1 (submit the samples, wait until Ready, print a table, exit)"
	@echo "                       SAMPLE=$(SAMPLE) (a folder of deploy/samples)   DATA=DIR (keep state there)"
	@echo "                       IDLE=$(IDLE) (stop an idle function after)   PORT=N (of the API server)"
	@echo "                       DISABLE=NAME (never start that function)"
	@echo "                       RECORD=1 (record every reconcile: kubectl slipway events, replay, console)"
	@echo "                       CLUSTERS=N (1: Machines run on the API server itself; more: on N remote ones)"
	@echo "  make bench settings: CLUSTERS=3 (500 Machines over so many clusters in the local stack)"
	@echo "                       SAMPLE=dockyards (200 Clusters with three NodePools each)"
	@echo "                       WORKLOADS=100 (follow so many workload clusters of Cluster API)"
	@echo "  make test  settings: TESTFLAGS='-run Name -v'   PKG=./shared/..."

.PHONY: run
run: ## Bring up the whole stack on this machine, submit the samples, show every event
	@go run ./deploy/local $(if $(ONCE),--once) $(if $(RECORD),--record) --sample='$(SAMPLE)' --idle $(IDLE) --clusters $(CLUSTERS) \
		$(if $(DATA),--data $(DATA)) $(if $(PORT),--port $(PORT)) $(if $(DISABLE),--disable $(DISABLE))

PKG ?= ./...
TESTFLAGS ?=
.PHONY: test
test: build-test ## Run all tests against a real API server (race detector on, order shuffled)
	go run ./test/kube/withetcd -- go test -race -shuffle=on -count=1 -p 2 -timeout 30m $(TESTFLAGS) $(PKG)
	@if [ '$(PKG)' = './...' ]; then set -e; for module in sources/adapter deploy/local/eventing; do \
		echo "== $$module"; (cd $$module && go test -race -shuffle=on -count=1 -timeout 15m ./...); done; fi

.PHONY: build-test
build-test: # The binaries that tests run, with progress
	@go run ./deploy/local build

.PHONY: build
build: ## Build every binary into .cache/bin
	@go run ./deploy/local build --all

.PHONY: generate
generate: tools ## Derive code, CRDs, sources, triggers, rights and the README's table from the declarations
	$(BIN)/controller-gen object paths=./api/...
	$(BIN)/controller-gen crd paths=./api/dockyards/... output:crd:dir=api/dockyards/crds
	$(BIN)/controller-gen crd paths=./api/vitistack/... output:crd:dir=api/vitistack/crds
	go run ./deploy/generate

.PHONY: check
check: tools ## Format, vet, lint, generated files, go mod tidy, vulnerabilities
	@.ci/check

.PHONY: bench
bench: ## Measure start, memory, latency and throughput, each beside a baseline
	@go run ./deploy/local build --all
	$(if $(filter 1,$(CLUSTERS)),$(if $(WORKLOADS),,go run ./test/kube/withetcd --)) go run ./test/bench -clusters $(CLUSTERS) -sample $(SAMPLE) $(if $(WORKLOADS),-workloads $(WORKLOADS))

.PHONY: tools
tools: # The pinned tools of `make check` and `make generate`
	@.ci/tools

.PHONY: clean
clean: ## Remove what was built and left behind by local stacks
	rm -rf .cache .local build
