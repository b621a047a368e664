# src/core/view.c: the compute of a pod that ended is not given back
s/^        gpu->used_cores_pct += (uint32_t)cores_pct;.*$/        gpu->used_cores_pct += cores_pct > 0 ? (uint32_t)cores_pct : 0;/
