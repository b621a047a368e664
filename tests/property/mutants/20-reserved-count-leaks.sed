# src/core/ledger_claims.c: confirm does not lower the number of binds under way
s/^    ledger->reserved -= claim->state == GS_CLAIM_RESERVED;\n    claim->state = GS_CLAIM_CONFIRMED;//
/claim->state = GS_CLAIM_CONFIRMED;/s/.*/    claim->state = GS_CLAIM_CONFIRMED; ledger->reserved++;/
