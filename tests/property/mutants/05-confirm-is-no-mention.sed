# src/core/ledger_claims.c: a relist frees a bind that ended meanwhile
s/^    claim->seen = true;.*//
