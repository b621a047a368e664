# src/service/sync.c, found by test_open_binds
/^static void on_ended/,/^}/s/gs_open_binds_remove(.*);//
