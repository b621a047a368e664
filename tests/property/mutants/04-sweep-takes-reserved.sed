# src/core/ledger_claims.c: a relist frees binds under way
s/ || claim->state == GS_CLAIM_RESERVED)/)/
