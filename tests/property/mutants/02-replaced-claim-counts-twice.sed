# src/core/ledger_claims.c: a repeated event charges again
s/^    count_out(ledger, old);$//
