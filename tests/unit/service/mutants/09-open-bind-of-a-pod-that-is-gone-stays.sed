# src/service/wake.c, found by test_open_binds
/case GS_BIND_POD_GONE:/,/break;/s/gs_bind_undo(.*);//
