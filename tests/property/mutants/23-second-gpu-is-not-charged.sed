# src/core/ledger_claims.c: of a pod over several GPUs only the first counts
/^static void charge(/,/^}/s/    node->view.cpu_used_milli/    (void)0;\n&/
/^static void charge(/,/^}/s/continue;/continue;\n        if (claim->charged \& (GS_GPU_BIT(gpu->idx) - 1)) continue;/
