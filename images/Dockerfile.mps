# SPDX-License-Identifier: Apache-2.0
#
# docker build -f images/Dockerfile.mps -t gpushare.invalid/gpushare-mps:0.1.0 .
# The same files as scripts/image.sh mps, which needs no Docker and gives one digest every time.
FROM debian:12 AS build
WORKDIR /src
# what is slow first, so that a change of the source does not repeat it
COPY scripts/lib scripts/lib
RUN ["/bin/bash", "-euc", ". scripts/lib/apt.sh; . scripts/lib/build.sh; \
     apt_need \"${build_packages[@]}\" binutils ca-certificates git jq"]
COPY . .
RUN scripts/image.sh --rootfs /rootfs mps

FROM scratch
ARG REVISION=unknown
LABEL org.opencontainers.image.title="gpushare-mps" \
      org.opencontainers.image.description="runs an MPS control daemon for each GPU of its node" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.vendor="gpushare"
COPY --from=build /rootfs /
# NVIDIA's container runtime gives it every GPU of the node and the driver's management
# library, which is loaded by name; depending on the host it lies in one of these folders.
ENV NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility \
    LD_LIBRARY_PATH=/usr/local/nvidia/lib64:/usr/lib64:/usr/lib/x86_64-linux-gnu:/usr/lib/aarch64-linux-gnu
USER 0:0
ENTRYPOINT ["/usr/bin/gpushare-mps"]
