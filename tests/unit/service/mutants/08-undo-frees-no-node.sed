# src/service/bind_outcome.c, found by test_wake
/gs_ledger_undo(store->ledger, uid);/,/}/s/gs_store_freed(store, slot)/gs_store_freed(store, GS_INDEX_NONE)/
