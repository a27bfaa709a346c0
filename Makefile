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

# Settings of `make bench`, `make chaos`, `make perturb` and `make fuzz`.
FUNCTION ?=
BENCHFLAGS ?=
SEED ?=
SHARE ?=
FUZZTIME ?= 30s
TARGET ?=
KEEP ?=
DURATION ?= 60s
OBJECTS ?= 300

.PHONY: help
help: ## Explain the targets
	@echo "Slipway: KubeVirt platforms run by stateless functions on Knative."
	@echo
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "  make logs-NAME  Follow the log of one function on a cluster"
	@echo "  make deploy-NAME  Build, push and deploy one function with kn func"
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
	@echo "                       FUNCTION=NAME (one alone)   BENCH_OUTPUT=FILE (JSON)   BENCH_LARGE=1 (up to 5,000 objects)"
	@echo "  make chaos settings: SEED=N (the same again)   DURATION=$(DURATION)   OBJECTS=$(OBJECTS)"
	@echo "  make perturb settings: SEED=N   FUNCTION=NAME (one alone)   SHARE=3/24 (one of 24 shares of all runs)"
	@echo "  make fuzz  settings: FUZZTIME=$(FUZZTIME) (of each target)   TARGET=REGEXP   KEEP=1"
	@echo "  make deploy settings: REGISTRY=$(if $(REGISTRY),$(REGISTRY),ghcr.io/you) (where images go)   OVERLAY=$(OVERLAY) (a folder of deploy/overlays)"
	@echo "                       IMAGES=PREFIX TAG=TAG (use images that are there)   NAMESPACE=$(NAMESPACE) (of kn func)"
	@echo "  make e2e   settings: SLIPWAY_E2E=required (fail where this machine cannot, instead of skipping)"
	@echo "  make test  settings: TESTFLAGS='-run Name -v'   PKG=./shared/..."

.PHONY: run
run: ## Bring up the whole stack on this machine, submit the samples, show every event
	@go run ./deploy/local $(if $(ONCE),--once) $(if $(RECORD),--record) --sample='$(SAMPLE)' --idle $(IDLE) --clusters $(CLUSTERS) \
		$(if $(DATA),--data $(DATA)) $(if $(PORT),--port $(PORT)) $(if $(DISABLE),--disable $(DISABLE))

PKG ?= ./...
TESTFLAGS ?=
.PHONY: test
test: build-test ## Run all tests against a real API server (race detector on, order shuffled)
	go run ./test/kube/withetcd -- go test -race -shuffle=on -count=1 -p 4 -timeout 30m $(TESTFLAGS) $(PKG)
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
check: tools ## Format, vet, lint, generated files, go mod tidy, licences, vulnerabilities
	@.ci/check

.PHONY: bench
bench: ## Measure start, memory, latency and throughput, each beside a baseline
	@go run ./deploy/local build --all
	go run ./test/bench -clusters $(CLUSTERS) -sample $(SAMPLE) $(if $(WORKLOADS),-workloads $(WORKLOADS)) $(if $(FUNCTION),-function $(FUNCTION)) $(BENCHFLAGS)

# Settings of what works on a real cluster: the one that kubectl is set to.
export OVERLAY ?= development
export REGISTRY ?=
export IMAGES ?=
export TAG ?=
export KUBECTL ?= kubectl
export KEEP_CRDS ?=
NAMESPACE ?= slipway-system
FUNC ?= $(BIN)/func
VERSION ?= v0.0.0

.PHONY: deploy
deploy: $(if $(IMAGES),,image-tools) ## Install on a cluster, or bring an installation up to date
	@deploy/deploy

.PHONY: undeploy
undeploy: ## Remove all that deploy made, unless somebody uses it
	@deploy/undeploy

deploy-%: func # One function (or slipway, the whole set), built by kn func
	@go run ./deploy/stage $*
	@test -n '$(REGISTRY)' || { echo "cannot deploy $*: set REGISTRY to where its image shall be pushed"; exit 1; }
	GOFLAGS='-mod=mod -trimpath' GOWORK=off $(FUNC) deploy --path build/func/$* --builder=host --registry $(REGISTRY) -n $(NAMESPACE)

logs-%: # What a function says, or source-adapter, on a cluster
	@if $(KUBECTL) -n $(NAMESPACE) get deployment $* >/dev/null 2>&1; then \
		$(KUBECTL) -n $(NAMESPACE) logs -f deployment/$* --all-containers --tail=100; \
	elif [ -n "$$($(KUBECTL) -n $(NAMESPACE) get pods -l serving.knative.dev/service=$* -o name)" ]; then \
		$(KUBECTL) -n $(NAMESPACE) logs -f -l serving.knative.dev/service=$* -c user-container --tail=100 --max-log-requests=20; \
	else echo "$* is at zero, or not installed; kubectl slipway resync $* starts it"; fi

.PHONY: stage
stage: ## Lay every function out for kn func, in build/func
	@go run ./deploy/stage -all

.PHONY: chart
chart: ## Write the Helm chart into build/chart (VERSION=v1.2.3)
	@go run ./deploy/generate -chart build/chart -version $(VERSION)

.PHONY: kind-setup
kind-setup: ## Make a kind cluster with Knative, in Docker or Podman (not run in CI)
	@deploy/kind-setup

.PHONY: dev
dev: formatter ## Format, run the quick tests, bring what changed into the local stack
	@git ls-files -z -m -o --exclude-standard '*.go' | while IFS= read -r -d '' file; do [ ! -f "$$file" ] || printf '%s\0' "$$file"; done | xargs -0 -r $(BIN)/gofumpt -w
	go vet . ./functions/... ./shared/... ./deploy/generate
	go test . ./functions/... ./shared/... ./deploy/generate
	@if $(BIN)/kube kubectl --kubeconfig '$(or $(DATA),.local/default)/kubeconfig' --request-timeout 2s get --raw /readyz >/dev/null 2>&1; then \
		go run ./deploy/local build --all && echo "a stack runs: each function takes its new program when it starts next; manifests want make run anew"; \
	else $(MAKE) --no-print-directory run; fi

.PHONY: func
func: # kn func itself
	@go run ./deploy/local build func

.PHONY: image-tools
image-tools: # The pinned tools of `make deploy`
	@.ci/tools images

.PHONY: func-test
func-test: image-tools ## Build, push and run the whole set and one function, with kn func and ko
	go run ./test/kube/withetcd -- go test -count=1 -timeout 30m -v ./test/images -args -images

.PHONY: func-all
func-all: image-tools ## The same with every function
	go run ./test/kube/withetcd -- go test -count=1 -timeout 60m -v ./test/images -args -images -every

.PHONY: tools
tools: # The pinned tools of `make check` and `make generate`
	@.ci/tools

.PHONY: clean
clean: ## Remove what was built and left behind by local stacks
	rm -rf .cache .local build

.PHONY: perturb
perturb: build-test ## Every function under every fault, at every call (hours; SHARE=1/24 for a part)
	@go test -c -o .cache/perturb.test ./test/perturb # run by go test itself it would tell nothing before its end
	cd test/perturb && go run ../kube/withetcd -- $(CURDIR)/.cache/perturb.test -test.timeout 12h -exhaustive $(if $(SHARE),-share $(SHARE)) $(if $(SEED),-seed $(SEED)) $(if $(FUNCTION),-only $(FUNCTION))

.PHONY: fuzz
fuzz: ## Fuzz all that reads untrusted input, one target after the other
	go run ./test/fuzz -time $(FUZZTIME) -only '$(TARGET)' $(if $(KEEP),-keep)

.PHONY: screenshots
screenshots: ## Pictures of every page of the console in build/screenshots (needs Chromium)
	@mkdir -p build/screenshots
	SLIPWAY_SCREENSHOTS=$(CURDIR)/build/screenshots go test -count=1 -run Console ./cmd/kubectl-slipway

.PHONY: formatter
formatter: # The pinned formatter
	@.ci/tools format

.PHONY: chaos
chaos: ## Kill API server, broker and functions at random, and compare with a calm run
	@go run ./deploy/local build --all
	go run ./test/chaos $(if $(SEED),-seed $(SEED)) -duration $(DURATION) -objects $(OBJECTS)

.PHONY: e2e
e2e: ## A real cluster on this machine, with everything installed, end to end (root on Linux)
	SLIPWAY_E2E=$(or $(SLIPWAY_E2E),1) go test -count=1 -timeout 60m -v ./test/cluster

.PHONY: e2e-shell
e2e-shell: ## The same cluster, and a shell to look around in it
	go run ./test/cluster/shell
