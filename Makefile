# What developers and CI run. `make` alone runs the tests.

.PHONY: test binary chart compare e2e e2e-install e2e-node e2e-run e2e-telemetry page page-pictures bench bench-agents bench-create bench-fleet bench-load bench-node bench-scale faults fuzz lint fips lint-workflows simulation generate docs docs-pictures release release-test

# What `tests/control-plane/build` has to build for the end-to-end tests, and for the chart's installation.
E2E_TOOLS = etcd kube-apiserver kube-controller-manager kubectl kube-scheduler kwok prometheus collector
TELEMETRY_TOOLS = etcd kube-apiserver kube-controller-manager kubectl collector
NODE_TOOLS = etcd kube-apiserver kube-controller-manager kubectl kube-scheduler helm3 kubelet kube-proxy \
	containerd containerd-shim-runc-v2 ctr bridge host-local loopback portmap coredns
INSTALL_TOOLS = etcd kube-apiserver kube-controller-manager kubectl kube-scheduler kwok helm3 helm4 cert-manager

# Where `make release` puts what it makes.
OUT = dist/release

# What the program in the image is built for: the machine's processor, or with the tools
# aarch64-unknown-linux-musl on x86_64.
TARGET = $(shell uname -m)-unknown-linux-musl

# Needs nothing but Rust.
test:
	cargo test

# The program as it is in the image: static, without libraries, in dist/.
# Needs musl-gcc (Debian's musl-tools).
binary:
	rustup target add $(TARGET)
	cargo build --release --locked --bin otel-webhook --target $(TARGET)
	mkdir -p dist
	cp $${CARGO_TARGET_DIR:-target}/$(TARGET)/release/otel-webhook dist/

# What helm makes of the chart, without a cluster: needs Go.
chart:
	tools=$$(tests/control-plane/build helm3 helm4 kubeconform kubectl alerts schemas) && \
	OTEL_WEBHOOK_CHART_TOOLS=$$tools cargo test --test chart -- $(CASE)

# Against a real API server, which is built from Go modules: needs Go, and says
# so where it is missing. CASE is a part of the names of the cases to run. The webhook is the program of
# OTEL_WEBHOOK_PROGRAM, if it is set, such as dist/otel-webhook.
e2e:
	control_plane=$$(tests/control-plane/build $(E2E_TOOLS)) && \
	OTEL_WEBHOOK_CONTROL_PLANE=$$control_plane cargo test --test e2e -- $(CASE)

# The chart, by helm 3 and 4, with cert-manager and without it, on the same.
e2e-install:
	control_plane=$$(tests/control-plane/build $(INSTALL_TOOLS)) && \
	OTEL_WEBHOOK_CONTROL_PLANE=$$control_plane cargo test --test install -- $(CASE)

# Injected pods in real containers, and our own image: needs Debian's packages
# and root. Where podman cannot be had this fails, unless
# OTEL_WEBHOOK_ALLOW_NO_PODMAN is set.
e2e-run:
	home=$$(tests/run/prepare) && if [ -n "$$home" ]; then $(MAKE) binary && \
	OTEL_WEBHOOK_RUN=$$home cargo test --test run -- $(CASE); fi

# Telemetry of injected pods in real containers, by real agents to a real Collector: needs Go, Debian's packages and
# root. Where podman cannot be had this fails, unless OTEL_WEBHOOK_ALLOW_NO_PODMAN is set.
e2e-telemetry:
	home=$$(tests/telemetry/prepare) && if [ -n "$$home" ]; then \
	control_plane=$$(tests/control-plane/build $(TELEMETRY_TOOLS)) && \
	OTEL_WEBHOOK_RUN=$$home OTEL_WEBHOOK_CONTROL_PLANE=$$control_plane cargo test --test telemetry -- $(CASE); fi

# The product on a real node, installed by the README's command: kubelet, containerd and kube-proxy in namespaces of
# their own. Needs Go, Debian's packages and root. Where they cannot be had this fails, unless
# OTEL_WEBHOOK_ALLOW_NO_NODE is set.
e2e-node:
	home=$$(tests/node/prepare) && if [ -n "$$home" ]; then $(MAKE) binary && \
	control_plane=$$(tests/control-plane/build $(NODE_TOOLS)) && \
	OTEL_WEBHOOK_RUN=$$home OTEL_WEBHOOK_CONTROL_PLANE=$$control_plane cargo test --test node -- $(CASE); fi

# The status page in a headless Chromium, of Debian's packages, which are unpacked without root.
# Where they cannot be had this fails, unless OTEL_WEBHOOK_ALLOW_NO_CHROMIUM is set.
page:
	home=$$(tests/page/prepare) && if [ -n "$$home" ]; then \
	OTEL_WEBHOOK_PAGE=$$home cargo test --test page -- $(CASE); fi

# The same, and writes the pictures in docs/images.
page-pictures:
	OTEL_WEBHOOK_PICTURES=1 $(MAKE) page CASE=light_or_dark

# Whether the program decides as another one does: OLD is the path of that one,
# and NEW that of a program to take in place of the one that is built here.
compare:
	OTEL_WEBHOOK_OLD=$(OLD) $(if $(NEW),OTEL_WEBHOOK_NEW=$(NEW)) cargo test --test compare

# The core alone: times by criterion, allocations and instructions. The next two
# compare with the committed figures of benches/figures, and replace them where
# OTEL_WEBHOOK_KEEP_FIGURES is set.
bench:
	cargo bench

# The whole server under load, as it is in the image. Wants two cores and
# nothing else on them. OTHER is the path of another program, such as that of
# an earlier commit: then the two are compared, and nothing else is measured.
# ONLY=opt-in measures only Instrumentations that opt pods in, many against one.
bench-load:
	rustup target add $(TARGET)
	$(if $(ONLY),OTEL_WEBHOOK_BENCH_ONLY=$(ONLY)) $(if $(OTHER),OTEL_WEBHOOK_BENCH_OTHER=$(OTHER)) cargo bench --bench load --target $(TARGET)

# What the agents of Java, Node.js and Python add to the start and the memory of a small service. Needs what
# `make e2e-telemetry` needs. OTEL_WEBHOOK_KEEP_FIGURES writes the table of docs/operations/sizes.md.
bench-agents:
	OTEL_WEBHOOK_BENCH_AGENTS=1 $(MAKE) e2e-telemetry CASE=

# What the creation of a pod takes on a real API server: without a webhook, with one that allows
# everything, and with ours. ROUNDS are the turns of each, 20 where it is not set.
bench-create:
	rustup target add $(TARGET)
	control_plane=$$(tests/control-plane/build) && \
	OTEL_WEBHOOK_CONTROL_PLANE=$$control_plane OTEL_WEBHOOK_BENCH_ROUNDS=$(ROUNDS) \
	cargo bench --bench create --target $(TARGET)

# The controller with a real API server with FLEET pods, workloads and Instrumentations, 50000/5000/1000 where it is not
# set.
bench-fleet:
	rustup target add $(TARGET)
	control_plane=$$(tests/control-plane/build) && \
	OTEL_WEBHOOK_CONTROL_PLANE=$$control_plane OTEL_WEBHOOK_BENCH_FLEET=$(FLEET) \
	cargo bench --bench fleet --target $(TARGET)

# What injection adds to the start of a pod and to the disk of its node, with the real agents, by both deliveries.
# Needs what `make e2e-node` needs. OTEL_WEBHOOK_KEEP_FIGURES writes the table of docs/operations/sizes.md.
bench-node:
	OTEL_WEBHOOK_BENCH_NODE=1 $(MAKE) e2e-node CASE=

# With a real API server with thousands of objects: SCALE is namespaces,
# Instrumentations and ReplicaSets, as in 2000/1000/5000; LIMIT_RANGES, such as
# 2000, adds a LimitRange to so many of the namespaces.
bench-scale:
	rustup target add $(TARGET)
	control_plane=$$(tests/control-plane/build) && \
	OTEL_WEBHOOK_CONTROL_PLANE=$$control_plane OTEL_WEBHOOK_BENCH_SCALE=$(SCALE) \
	OTEL_WEBHOOK_BENCH_LIMIT_RANGES=$(LIMIT_RANGES) \
	cargo bench --bench scale --target $(TARGET)

# Attackers and failures, while good reviews are sent, against the program as it is in the
# image; CASE is a part of the names.
faults: binary
	OTEL_WEBHOOK_PROGRAM=$${OTEL_WEBHOOK_PROGRAM:-dist/otel-webhook} cargo test --test faults -- $(CASE)

# Each fuzz target for SECONDS: needs a nightly compiler.
fuzz:
	fuzz/run $(or $(SECONDS),60) $(TARGETS)

# "All targets" leaves out what `cargo test` and `cargo bench` do, and so these.
lint:
	cargo fmt --all --check
	cargo clippy --all-targets -- -D warnings
	cargo clippy --test chart --test compare --test e2e --test faults --test fips --test install --test node --test page --test run --test telemetry --bench create --bench fleet --bench load --bench scale -- -D warnings

# A million steps of the simulation of restarts, with crashes, overlapping leaders and late views: about three minutes.
simulation:
	OTEL_WEBHOOK_SIMULATION_SEEDS=200 cargo test --release -p otel-webhook-fleet simulation

# Files that are made from the code and the chart: needs Go. A failure leaves the old ones.
generate:
	charts/generate

# The site of docs/, in dist/docs, without a network once mdBook is built.
docs:
	release/docs dist/docs

# All pictures in docs/images: drawings by Python, and the status page. Needs what `make page` needs.
docs-pictures:
	docs/images/make
	$(MAKE) page-pictures

# Everything that a release of VERSION consists of, in OUT, from the commit that is checked out: needs Go, jq and
# Python's pip. KEY, a private key of cosign, signs it.
release:
	release/build "$(VERSION)" "$(OUT)"
	$(if $(KEY),KEY="$(KEY)" release/sign "$(OUT)")

# Two builds are the same bytes, and what they hold can be verified, run, installed and upgraded to. RELEASE is an
# output of `make release` to try in place of two new ones. Takes the time of two releases; needs root, for podman.
release-test:
	release/test $(RELEASE)

# The program with AWS-LC in FIPS mode (docs/operations/fips.md): needs cmake, and some minutes to build AWS-LC.
fips:
	release/fips

# The workflows of GitHub and the scripts of releases.
lint-workflows:
	tools=$$(release/tools actionlint zizmor) && \
	"$$tools/actionlint" .github/workflows/*.yaml && "$$tools/zizmor" --quiet --offline --persona pedantic .github
