# One static program, and nothing else: no shell, no libraries, no root.
#
#   docker build --tag otel-webhook .
#
# builds the program in a container. One that was built outside, by `make
# binary`, is copied in where base images cannot be pulled:
#
#   docker build --build-arg PROGRAM=outside --tag otel-webhook .
ARG PROGRAM=inside

FROM scratch AS outside
COPY dist/otel-webhook /source/dist/otel-webhook

FROM docker.io/library/rust:1.95-slim-bookworm AS inside
RUN apt-get update && apt-get install --yes --no-install-recommends make musl-tools
WORKDIR /source
COPY . .
RUN make binary

FROM ${PROGRAM} AS program

FROM scratch
LABEL org.opencontainers.image.title="otel-webhook" \
      org.opencontainers.image.description="Kubernetes admission webhook that injects OpenTelemetry auto-instrumentation into annotated pods" \
      org.opencontainers.image.source="https://github.com/otel-webhook/otel-webhook" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=program /source/dist/otel-webhook /otel-webhook
# As a number, so that Kubernetes can verify runAsNonRoot.
USER 65532:65532
EXPOSE 9443 8080
ENTRYPOINT ["/otel-webhook"]
CMD ["serve"]
