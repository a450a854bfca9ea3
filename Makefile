# make         builds bin/plimsoll
# make demo    finds a load line on an embedded control plane
# make demo-real  finds a load line with real containers (root; see make deps)
# make test    runs the tests, with one smoke test for each real part (CI)
# make test-long  real parts in depth, faults by fixed seeds, races, measurements
# make truth   finds what was planted, and prints the table of it
# make faults  plants every fault in every load, with a new seed (an hour)
# make faults-core  the short part of it, with a fixed seed
# make fuzz    runs every fuzz target for a minute (half an hour)
# make race    runs the race detector over everything
# make bench   measures the program against its yardsticks
# make bench-scale  150,000 pods on 5000 simulated nodes (22 GiB of memory)
# make traefik builds bin/traefik, for ingresses and gateways of labs (five minutes)
# make ui      builds the report's page from ui/ (needs node)
# make check   formatting, vet, staticcheck, house rules
# make clean   removes what the above made

KUBERNETES := $(shell sed -n 's|^\tk8s.io/kubernetes v\([0-9.]*\)$$|\1|p' go.mod)
KUBERNETES_MAJOR := $(word 1,$(subst ., ,$(KUBERNETES)))
KUBERNETES_MINOR := $(word 2,$(subst ., ,$(KUBERNETES)))
VERSION_PACKAGE := k8s.io/component-base/version
LDFLAGS := -s -w -X $(VERSION_PACKAGE).gitVersion=v$(KUBERNETES) \
	-X $(VERSION_PACKAGE).gitMajor=$(KUBERNETES_MAJOR) -X $(VERSION_PACKAGE).gitMinor=$(KUBERNETES_MINOR)

# One set of build flags for everything, so that what the program was built
# from serves vet, staticcheck and the tests as well.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath -buildvcs=false

STATICCHECK := go tool -modfile=tools/go.mod staticcheck
# staticcheck would read the sources of a whole control plane.
CHECKED = $$(go list ./... | grep -v -e '/internal/lab/component$$' -e '^plimsoll.dev/plimsoll$$')

.PHONY: build release traefik ui demo demo-real deps deps-paths test test-times test-long truth faults faults-core fuzz check race bench bench-scale clean
.DEFAULT_GOAL := build

# $(call compile,LINKER FLAGS,PACKAGE,FILE) leaves a file alone that it would
# write again: results of tests that look at it stay cached.
define compile
@echo "go build -ldflags '$(1)' -o $(3) $(2)"
@new=$$(mktemp -d) && trap 'rm -rf "$$new"' EXIT && go build -ldflags '$(1)' -o "$$new/it" $(2) && { cmp -s "$$new/it" $(3) || mv -f "$$new/it" $(3); }
endef

build:
	@mkdir -p bin
	@# The agent goes into the program, which puts it into images.
	$(call compile,-s -w,./agent,internal/lab/image/built/agent)
	$(call compile,$(LDFLAGS),.,bin/plimsoll)

# dist/ has an archive of the program for each platform, with a bill of its materials,
# checksums and an installer. Two releases of a commit have the same bytes.
release:
	CGO_ENABLED=0 go run ./release $(if $(PLATFORMS),-platforms $(PLATFORMS)) -ldflags '$(LDFLAGS)'

# A module of its own: nothing else needs it. 'plimsoll image build traefik' takes it
# where it is in $PATH, as it does the program of a release.
traefik:
	go -C tools/traefik build -ldflags '-s -w -X github.com/traefik/traefik/v3/pkg/version.Version=$(shell sed -n 's|^\tgithub.com/traefik/traefik/v3 v\([0-9.]*\).*$$|\1|p' tools/traefik/go.mod)' -o $(CURDIR)/bin/traefik github.com/traefik/traefik/v3/cmd/traefik

# The load line of 20 simulated nodes that take 110 pods each.
demo: build
	bin/plimsoll limit node-density --lab-nodes 20 --lab-max-pods 110 --from 40 --step 40 --hold 5s --slo 'all Ready' --explain

# The load line of a real node with half a processor, on which applications are
# ready while they can query their database: probes fail before places run out.
demo-real: build
	bin/plimsoll limit node-density-heavy --lab-real-node --lab-node-cpus 0.5 --lab-max-pods 60 --from 2 --step 4 --max 40 --confirm 1 --hold 6s --step-timeout 30s \
		--set probeDelay=1 --set probePeriod=2 --set probeTimeout=1 --set queryWork=1000000 --slo 'all Ready' --explain

check:
	@files=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$files" ]; then echo "gofmt would change:"; echo "$$files"; echo "run: gofmt -w $$files"; exit 1; fi
	go vet ./...
	@# The programs of other systems. Their tests are Linux's: the overlay leaves them out.
	@tests=$$(mktemp) && trap 'rm -f "$$tests"' EXIT && { echo '{"Replace":{'; git ls-files '*_test.go' | sed 's|.*|"$(CURDIR)/&":""|' | paste -sd,; echo '}}'; } >"$$tests" && \
		for os in darwin windows; do echo "GOOS=$$os go vet" && GOOS=$$os go vet -overlay "$$tests" $$(GOOS=$$os go list -deps . | grep '^plimsoll.dev/') || exit 1; done
	$(STATICCHECK) $(CHECKED)
	go -C tools/ci test ./... # examples/ci by the modules of their systems

# What a real node runs.
NODE_PACKAGES := containerd runc crun containernetworking-plugins nftables

# What the workload router runs, and what a test holds files that are written for
# others against: haproxy -c, and promtool and Prometheus, which read what is scraped.
# With them the yardsticks of its generator.
READER_PACKAGES := haproxy wrk nghttp2-client prometheus

# What the workloads of volumes and of IO run.
STORAGE_PACKAGES := glusterfs-server glusterfs-client xfsprogs fio

# What runs real guests in a lab (82 MB).
GUEST_PACKAGES := qemu-system-x86

# What paths run where the kernel lacks them, and the yardsticks of their generator:
# for make test-long and make bench alone.
PATH_PACKAGES := openvswitch-switch strongswan-charon strongswan-swanctl libcharon-extra-plugins libstrongswan-standard-plugins iperf3 sockperf

deps-paths:
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && ! dpkg -s $(PATH_PACKAGES) >/dev/null 2>&1; then \
		echo "installing $(PATH_PACKAGES) for network paths"; \
		[ -e /usr/sbin/policy-rc.d ] || { printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d; chmod 755 /usr/sbin/policy-rc.d; trap 'rm -f /usr/sbin/policy-rc.d' EXIT; }; \
		{ apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $(PATH_PACKAGES); } >/dev/null 2>&1 || echo "that failed: they will be skipped"; fi

# What tests of the page, of real nodes and of written files need, and what a
# real node needs. Without it they are skipped, and say so.
deps:
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && ! dpkg -s $(NODE_PACKAGES) >/dev/null 2>&1; then \
		echo "installing $(NODE_PACKAGES) for real nodes"; \
		{ apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $(NODE_PACKAGES); } >/dev/null 2>&1 || echo "that failed: what needs them will be skipped"; fi
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && ! dpkg -s $(READER_PACKAGES) $(STORAGE_PACKAGES) $(GUEST_PACKAGES) >/dev/null 2>&1; then \
		echo "installing $(READER_PACKAGES) $(STORAGE_PACKAGES) $(GUEST_PACKAGES) for workloads, and the tests of what is written for HAProxy"; \
		[ -e /usr/sbin/policy-rc.d ] || { printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d; chmod 755 /usr/sbin/policy-rc.d; trap 'rm -f /usr/sbin/policy-rc.d' EXIT; }; \
		{ apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $(READER_PACKAGES) $(STORAGE_PACKAGES) $(GUEST_PACKAGES); } >/dev/null 2>&1 || echo "that failed: they will be skipped"; fi
	@if ! command -v chromium >/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "installing chromium for the tests of the report"; \
		{ apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium; } >/dev/null 2>&1 || echo "that failed: they will be skipped"; fi

	@# Each lab watches some fifteen files, a real node fifty: side by side they
	@# need more than the usual 128.
	@if [ "$$(id -u)" = 0 ] && [ "$$(cat /proc/sys/fs/inotify/max_user_instances)" -lt 1024 ]; then \
		echo "raising fs.inotify.max_user_instances to 1024 for labs side by side"; \
		sysctl -qw fs.inotify.max_user_instances=1024 || echo "that failed: tests of real nodes may, too"; fi

# Tests that need the program find it by PLIMSOLL_BINARY. No test is run again when
# it fails: what shows why is in PLIMSOLL_KEEP (/tmp/plimsoll-failed), with the
# command that runs it again.
GO_TEST := GOGC=400 PLIMSOLL_BINARY=$(CURDIR)/bin/plimsoll go test -vet=off -timeout 20m
LONG_TEST := PLIMSOLL_LONG=1 $(GO_TEST) -timeout 60m
# $(call packages_of,PATTERN) lists the packages whose tests hold a pattern.
packages_of = $$(grep -rlE '$(1)' --include='*_test.go' internal | xargs -n 1 dirname | sort -u | sed 's|^|./|')

# The first package takes longest: the others run beside it.
test: deps build
	$(GO_TEST) -p 2 -parallel 4 ./internal/test/e2e/records ./...

# The tests that skip themselves without PLIMSOLL_LONG, with the rest of their
# packages. The loads of a real HAProxy, which fill the processors, run by
# themselves, and those that measure one at a time after all.
# No test of make test takes longer than 20 s, with the machine to itself.
test-times: deps build
	$(GO_TEST) -count=1 -v ./... | awk '/^--- (PASS|FAIL)/ { took = substr($$4, 2) + 0; if (took > longest) { longest = took; of = $$3 } } \
		!/^ *(=== |--- (PASS|SKIP))/ { said = said $$0 "\n" } /^(ok|\?|FAIL)[ \t]/ { if (/^FAIL/) { failed = 1; printf "%s", said } said = "" } \
		END { print "longest: " of " " longest " s"; exit failed || longest > 20 }'

test-long: deps deps-paths build
	$(MAKE) test-times
	$(LONG_TEST) -p 2 -parallel 4 $(call packages_of,suite\.|harness\.|ring\.)
	$(MAKE) faults-core SEED=1
	$(MAKE) faults-core SEED=2
	PLIMSOLL_MEASURE=1 $(LONG_TEST) -p 1 -parallel 1 -run '^TestMeasured' $(call packages_of,suite\.Measures)
	$(MAKE) race

# What is found of what was planted. Delays of milliseconds are told apart
# there: it runs alone, and the machine should be doing nothing else.
truth: build
	PLIMSOLL_MEASURE=1 PLIMSOLL_TRUTH_OUT=$(CURDIR)/docs/tables/truth.md $(LONG_TEST) -count=1 -v ./internal/test/truth

# The matrix of faults by loads: what each run does beside the same run without the
# fault. SEED=N draws again what a run has drawn, FAULT='503' and LOAD='density' are
# parts of the names of what is made alone, WITHIN=20m is when nothing is begun any
# more. docs/tables/reliability.md has its table.
FAULTS = $(LONG_TEST) -timeout 70m -count=1 -v -parallel 6 -run '^TestMatrix$$' ./internal/test/faults
FAULTS_CHOSEN = PLIMSOLL_FAULTS_FAULT='$(FAULT)' PLIMSOLL_FAULTS_LOAD='$(LOAD)'

faults: deps build
	@seed=$(SEED); seed=$${seed:-$$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}; echo "seed $$seed"; \
		$(FAULTS_CHOSEN) PLIMSOLL_FAULTS=whole PLIMSOLL_FAULTS_WITHIN=$(or $(WITHIN),50m) PLIMSOLL_FAULTS_SEED=$$seed PLIMSOLL_FAULTS_OUT=$(CURDIR)/docs/tables/reliability.md $(subst Matrix,(Matrix|AConfigurationThatIsKilled),$(FAULTS))

faults-core: deps build
	$(FAULTS_CHOSEN) PLIMSOLL_FAULTS=short PLIMSOLL_FAULTS_WITHIN=$(or $(WITHIN),1h) PLIMSOLL_FAULTS_SEED=$(or $(SEED),1) $(FAULTS)

# Every fuzz target for a minute each. An input that fails is kept by the Go tool in the
# package's testdata/fuzz, and make test runs it from then on: commit it with the
# correction. Without an input "context deadline exceeded" is no failure: the Go tool
# says it when the time is over within an execution.
FUZZTIME = 1m

fuzz:
	@log=$$(mktemp) && trap 'rm -f "$$log"' EXIT && for file in $$(grep -rlE '^func Fuzz' --include='*_test.go' internal | sort); do \
		for target in $$(sed -nE 's/^func (Fuzz[A-Za-z0-9]+)\(.*/\1/p' $$file); do \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) ./$$(dirname $$file) >"$$log" 2>&1 || \
				{ grep -q 'context deadline exceeded' "$$log" && ! grep -q 'Failing input' "$$log"; } || { cat "$$log"; exit 1; }; \
			echo "$$(dirname $$file) $$target: $$(grep -o 'execs: [0-9]*' "$$log" | tail -1)"; \
		done; \
	done

# The race detector over everything but the control plane.
race: build
	CGO_ENABLED=1 PLIMSOLL_BINARY=$(CURDIR)/bin/plimsoll go test -race -timeout 40m $$(go list ./... | grep -v -e '/internal/lab/component$$' -e '^plimsoll.dev/plimsoll$$')

# The page's script and style are committed, so that nothing else needs node.
ui:
	cd ui && npm ci --no-audit --no-fund && npm run --silent build

# Whole-program figures on this machine, beside a plain client's, and then the
# parts'. The machine should be doing nothing else.
bench: deps-paths build
	PLIMSOLL_BINARY=$(CURDIR)/bin/plimsoll go test -run '^$$' -bench . -benchtime 1x -timeout 60m ./internal/test/bench
	PLIMSOLL_BINARY=$(CURDIR)/bin/plimsoll go test -run '^$$' -bench . -benchtime 1x ./internal/system/router
	PLIMSOLL_BINARY=$(CURDIR)/bin/plimsoll go test -run '^$$' -bench . -benchtime 1x ./internal/system/network ./internal/system/local/clients
	PLIMSOLL_BINARY=$(CURDIR)/bin/plimsoll go test -run '^$$' -bench WatchMachines -benchtime 1x ./internal/system/kubernetes/follow
	go test -run '^$$' -bench . -benchmem ./internal/system/kubernetes/api ./internal/record ./internal/plan/kubeburner ./internal/judge ./internal/report

# Kubernetes' tested maximum: 150,000 pods on 5000 simulated nodes. It takes 22
# GiB of memory and some twenty minutes. docs/lab.md has its figures. Then ladders
# to a thousand volumes of a real GlusterFS, made and mounted, with multiplexing and
# without, in some forty minutes: docs/volumes.md has their figures. A ladder that the
# guard of memory ends (exit code 1) has told how many the machine holds.
bench-scale: build
	bin/plimsoll sweep node-density --lab-nodes 5000 --levels 30 --step-timeout 20m --explain
	bin/plimsoll sweep gluster-volumes --levels 100,300,500,1000 --step-timeout 30m --set maxBricksPerProcess=70 --vary mount=false,true --vary multiplex=true,false --explain || [ $$? -eq 1 ]

clean:
	rm -rf bin internal/lab/image/built/agent
