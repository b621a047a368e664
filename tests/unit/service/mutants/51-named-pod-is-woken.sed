# src/service/pending.c, found by test_waker
s/entry->waiter.named_ns = now_ns;/(void)now_ns;/
