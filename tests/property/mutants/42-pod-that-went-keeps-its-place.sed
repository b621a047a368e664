# src/core/view.c: a pod that went counts among those that a GPU may have
s/gpu->pods += units < 0 ? UINT32_MAX : 1;/gpu->pods += units > 0;/
