# src/service/waker.c, found by test_waker
s/LESS_FIRST(other->priority, one->priority);//
