# src/core/ledger_claims.c: forgets to free on deletion, Succeeded and Failed
s/^    count_out(ledger, claim);$//
