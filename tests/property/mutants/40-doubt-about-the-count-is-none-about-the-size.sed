# src/core/ledger_claims.c: a pod that may be spread is charged only where all of it could be
s/return least < claim->units ? least : claim->units;/(void)least;\n    return claim->units;/
