# src/core/ledger_claims.c: a recorded GPU that is not there or too small
s/ || (claim->gpus & ~could_hold)//
