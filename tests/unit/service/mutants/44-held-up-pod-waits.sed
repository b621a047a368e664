# src/service/waker.c, found by test_offers
/^static bool is_due/,/^}/s/is_owed(waiter, now_ns) ||/false ||/
