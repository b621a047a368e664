# src/core/placement.c: behind a seat for later, a seat in what is free leaves more than there is
s/^    gpu->free_units -= hold->units;$/    uint32_t left = (uint32_t)(gpu->total_units - gpu->used_units);\n    gpu->free_units = left < gpu->free_units ? left : gpu->free_units;/
