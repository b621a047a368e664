# src/service/wake.c, found by test_wake
s/service->lost_epoch = waiter->epoch;/(void)service;/
