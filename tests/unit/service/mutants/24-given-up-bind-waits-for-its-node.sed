# src/service/bind.c, found by test_wake
s/gs_pending_anywhere(.*);//
