# The control plane. Build from the root of the repository:
#   docker build -f deploy/docker/control.Dockerfile -t waymark-control .
FROM node:24-bookworm-slim AS console
WORKDIR /src
COPY . .
RUN control/console/build

FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
COPY --from=console /src/control/console/dist control/console/dist
RUN cargo build --locked --release -p control --bin control

# Holds libc, libgcc and CA certificates, and no shell: nothing is fetched or written at run.
FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /src/target/release/control /usr/local/bin/control
USER 65532:65532
EXPOSE 8080 8082 8083 8443
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/control"]
CMD ["serve"]
