# src/core/placement.c: who waits for compute is seated nowhere until it is free
s/^    uint32_t going = leaving\[gpu->idx\].cores_pct;$/    uint32_t going = 0;/
