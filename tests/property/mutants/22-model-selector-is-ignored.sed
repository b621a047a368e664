# src/core/placement.c: best fit takes a GPU that the pod does not allow
s/^           (allowed & GS_GPU_BIT(gpu->idx));$/           allowed;/
