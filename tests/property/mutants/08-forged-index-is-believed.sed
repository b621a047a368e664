# src/core/ledger_claims.c: a recorded GPU that is not there or too small
s/believed && !(claim->gpus & ~(claim->from_moved ? has.present : has.large))/believed/
