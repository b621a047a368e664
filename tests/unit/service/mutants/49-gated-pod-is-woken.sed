# src/service/waker.c, found by test_waker
s/return pod->gated ||/return/
