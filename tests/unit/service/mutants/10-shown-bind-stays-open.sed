# src/service/sync.c, found by test_open_binds
/^static int on_bound/,/^}/s/gs_open_binds_remove(.*);//
