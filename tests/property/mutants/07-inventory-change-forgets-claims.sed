# src/core/ledger.c: claims are not counted anew when a node's GPUs change
/forget_others(ledger, slot);/{n;s/gs_ledger_recount_node(ledger, slot);/gs_ledger_node_touch(ledger, entry);/}
