# src/core/ledger_holds.c: scores of before stay in the cache
/^static void drop_hold/,/^}/s/gs_ledger_node_touch(ledger, node);//
