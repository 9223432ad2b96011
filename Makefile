# What developers and CI run. `make` alone runs the tests.

.PHONY: test e2e e2e-run lint generate

# Needs nothing but Rust.
test:
	cargo test

# Against a real API server, which is built from Go modules: needs Go, and says
# so where it is missing. CASE is a part of the names of the cases to run.
e2e:
	control_plane=$$(tests/control-plane/build) && \
	OTEL_WEBHOOK_CONTROL_PLANE=$$control_plane cargo test --test e2e -- $(CASE)

# Injected pods in real containers: needs Debian's packages and root. Where
# podman cannot be had this fails, unless OTEL_WEBHOOK_ALLOW_NO_PODMAN is set.
e2e-run:
	home=$$(tests/run/prepare) && if [ -n "$$home" ]; then \
	OTEL_WEBHOOK_RUN=$$home cargo test --test run -- $(CASE); fi

# "All targets" leaves out what `cargo test` does, and so these two.
lint:
	cargo fmt --check
	cargo clippy --all-targets -- -D warnings
	cargo clippy --test e2e --test run -- -D warnings

# Files that are made from the code and the chart: needs Go. A failure leaves the old ones.
generate:
	charts/generate
