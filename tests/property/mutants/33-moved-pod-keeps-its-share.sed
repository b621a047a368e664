# src/core/ledger_claims.c: its memory is not divided by the GPUs it is told to be on
s/claim->units = gs_units_each(.*/(void)gpus;/
