# src/core/view.c: of a pod over several GPUs only the first counts
/^void gs_view_charge(/,/^}/s/continue;/continue;\n        if (gpus \& (GS_GPU_BIT(gpu->idx) - 1)) continue;/
