# src/service/waker.c, found by test_waker
s/all\[i\]->rank = same .*/all[i]->rank = 0 * same;/
