# src/service/bind_outcome.c, found by test_open_binds
/^static void undo/,/^}/s/gs_open_binds_remove(.*);//
