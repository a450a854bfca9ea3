# make         builds bin/plimsoll
# make demo    finds a load line on an embedded control plane
# make demo-real  finds a load line with real containers (root; see make deps)
# make test    runs all tests and checks
# make truth   finds what was planted, and prints the table of it
# make race-core  the race detector over what shares data (CI)
# make race    runs the race detector over everything
# make bench   measures the program against its yardsticks
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
CHECKED = $$(go list ./... | grep -v -e '/internal/component$$' -e '^plimsoll.dev/plimsoll$$')
# Packages that share data between goroutines and do not link Kubernetes.
CONCURRENT := ./internal/analyze ./internal/engine ./internal/experiment ./internal/observe ./internal/record ./internal/sim

.PHONY: build ui demo demo-real deps test truth check race race-core bench clean
.DEFAULT_GOAL := build

build:
	@mkdir -p bin
	@# The agent goes into the program, which puts it into images.
	go build -ldflags '-s -w' -o internal/image/built/agent ./agent
	go build -ldflags '$(LDFLAGS)' -o bin/plimsoll .

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
	$(STATICCHECK) $(CHECKED)

# What a real node runs.
NODE_PACKAGES := containerd runc crun containernetworking-plugins nftables

# What a test holds files that are written for others against: haproxy -c.
READER_PACKAGES := haproxy

# What tests of the page, of real nodes and of written files need, and what a
# real node needs. Without it they are skipped, and say so.
deps:
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && ! dpkg -s $(NODE_PACKAGES) >/dev/null 2>&1; then \
		echo "installing $(NODE_PACKAGES) for real nodes"; \
		{ apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $(NODE_PACKAGES); } >/dev/null 2>&1 || echo "that failed: what needs them will be skipped"; fi
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && ! dpkg -s $(READER_PACKAGES) >/dev/null 2>&1; then \
		echo "installing $(READER_PACKAGES) for the tests of what is written for it"; \
		{ apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $(READER_PACKAGES); } >/dev/null 2>&1 || echo "that failed: they will be skipped"; fi
	@if ! command -v chromium >/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "installing chromium for the tests of the report"; \
		{ apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium; } >/dev/null 2>&1 || echo "that failed: they will be skipped"; fi

# Tests that need the program find it by PLIMSOLL_BINARY.
test: deps build check
	PLIMSOLL_BINARY=$(CURDIR)/bin/plimsoll go test -timeout 30m $$(go list ./... | grep -v /internal/truth$$)
	PLIMSOLL_BINARY=$(CURDIR)/bin/plimsoll go test ./internal/truth

# What is found of what was planted. Delays of milliseconds are told apart
# there: it runs alone, and the machine should be doing nothing else.
truth: build
	PLIMSOLL_BINARY=$(CURDIR)/bin/plimsoll PLIMSOLL_TRUTH_OUT=$(CURDIR)/docs/truth.md go test -count=1 -v ./internal/truth

# The packages that share data between goroutines, under the race detector.
race-core:
	@if command -v gcc >/dev/null; then CGO_ENABLED=1 go test -short -race $(CONCURRENT); \
		else echo "no C compiler: the race detector is left out (apt-get install gcc)"; fi

race: build
	CGO_ENABLED=1 PLIMSOLL_BINARY=$(CURDIR)/bin/plimsoll go test -race $$(go list ./... | grep -v -e '/internal/component$$' -e '^plimsoll.dev/plimsoll$$')

# The page's script and style are committed, so that nothing else needs node.
ui:
	cd ui && npm ci --no-audit --no-fund && npm run --silent build

# Whole-program figures on this machine, beside a plain client's, and then the
# parts'. The machine should be doing nothing else.
bench: build
	PLIMSOLL_BINARY=$(CURDIR)/bin/plimsoll go test -run '^$$' -bench . -benchtime 1x -timeout 60m ./internal/bench
	go test -run '^$$' -bench . -benchmem ./internal/cluster ./internal/record ./internal/kubeburner ./internal/report

clean:
	rm -rf bin internal/image/built/agent
