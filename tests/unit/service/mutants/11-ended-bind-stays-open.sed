# src/service/sync.c, found by test_open_binds
/^static void end_pod/,/^}/s/gs_open_binds_remove(.*);//
