# What developers and CI run. `make` alone runs the tests.

.PHONY: test e2e lint generate

# Needs nothing but Rust.
test:
	cargo test

# Against a real API server, which is built from Go modules: needs Go, and says
# so where it is missing. CASE is a part of the names of the cases to run.
e2e:
	control_plane=$$(tests/control-plane/build) && \
	OTEL_WEBHOOK_CONTROL_PLANE=$$control_plane cargo test --test e2e -- $(CASE)

# "All targets" leaves out what `cargo test` does, and so the e2e program.
lint:
	cargo fmt --check
	cargo clippy --all-targets -- -D warnings
	cargo clippy --test e2e -- -D warnings

# Files that are made from the code. A failure leaves the old ones.
generate:
	cargo run --quiet -- crd >manifests/crd.yaml.new && mv manifests/crd.yaml.new manifests/crd.yaml || \
	{ rm -f manifests/crd.yaml.new; exit 1; }
