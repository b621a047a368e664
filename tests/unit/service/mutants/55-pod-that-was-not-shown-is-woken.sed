# src/service/waker.c, found by test_wake
s/return waiter->shown &&/return/
