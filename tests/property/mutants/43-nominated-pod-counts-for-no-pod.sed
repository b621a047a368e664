# src/core/placement.c: a place that is kept for a nominated pod is given away, as memory is left
s/^    gpu->pods++;$//
