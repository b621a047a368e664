# src/service/waker.c, found by test_waker
/^static int by_least_wakes/,/^}/s/LESS_FIRST(one->wakes, other->wakes);/LESS_FIRST(other->wakes, one->wakes);/
