# src/core/ledger_claims.c: a deletionTimestamp that appears later is not noticed
s/^    to->leaving = from->leaving;$//
