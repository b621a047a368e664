# src/service/sync.c, found by test_open_binds
/^static int sync_claim/,/^}/s/gs_open_binds_remove(.*);//
