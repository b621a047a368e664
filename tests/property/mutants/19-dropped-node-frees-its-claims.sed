# src/core/ledger.c: a node object that goes for a moment takes the claims along
s/^    entry->present = entry->tells_moved = false;$/    while (entry->first_claim != GS_INDEX_NONE) gs_ledger_claim_drop(ledger, entry->first_claim);\n&/
