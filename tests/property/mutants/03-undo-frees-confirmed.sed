# src/core/ledger_claims.c: a lost answer's undo frees a bound pod
s/ || ledger->claims\[slot\].state != GS_CLAIM_RESERVED)/)/
