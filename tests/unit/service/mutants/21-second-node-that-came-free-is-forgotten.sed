# src/service/waker.c, found by test_wake
s/waker->lost_epoch = waiter->epoch;/(void)waker;/
