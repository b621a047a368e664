# src/core/ledger_claims.c: its summary still shows the claim
s/gs_ledger_node_touch(ledger, &ledger->nodes\[old_node\]);//
