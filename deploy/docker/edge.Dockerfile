# The edge. Build from the root of the repository:
#   docker build -f deploy/docker/edge.Dockerfile -t waymark-edge .
FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo build --locked --release -p edge --bin edge

# Holds libc, libgcc and CA certificates, and no shell: nothing is fetched or written at run but the data folder.
FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /src/target/release/edge /usr/local/bin/edge
# 65532 is `nonroot`; the folder of scans and of what the edge held is a volume of that user.
USER 65532:65532
ENV WAYMARK_DATA_DIR=/data
VOLUME /data
EXPOSE 8081 8082
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/edge"]
