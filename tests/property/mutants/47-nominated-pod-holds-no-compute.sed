# src/core/placement.c: the compute of a place that is kept is given away
s/^    gpu->free_cores_pct = (uint8_t)(gpu->free_cores_pct - hold->cores_pct);$//
