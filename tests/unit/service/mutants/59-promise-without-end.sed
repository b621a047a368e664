# src/service/promises.c, found by test_promises
s/ \&\& now_ns - member->since_ns < GS_PROMISE_NS//
