# src/core/ledger_claims.c: between two events a GPU looks free
s/^    b->gpus = gpus;$/    (void)gpus;/
