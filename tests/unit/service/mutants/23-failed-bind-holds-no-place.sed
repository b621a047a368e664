# src/service/bind_outcome.c, found by test_wake
s/(void)gs_sync_hold(service, &pod, NULL);//
