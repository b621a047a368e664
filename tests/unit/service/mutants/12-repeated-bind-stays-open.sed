# src/service/bind.c, found by test_open_binds
/^static void confirm/,/^}/s/gs_open_binds_remove(.*);//
