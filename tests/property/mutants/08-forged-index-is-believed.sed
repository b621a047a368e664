# src/core/ledger_claims.c: a recorded GPU that is not there or too small
s/believed && !(claim->gpus & ~(claim->told ? has.present : has.large))/believed/
