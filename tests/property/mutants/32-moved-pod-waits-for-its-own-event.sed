# src/core/ledger.c: the node's list is not followed when it comes
s/gs_ledger_follow_moved(ledger, entry->view.slot);//
