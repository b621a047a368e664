# src/service/bind_outcome.c, found by test_open_binds
/^void gs_bind_confirm/,/^}/s/gs_open_binds_remove(.*);//
