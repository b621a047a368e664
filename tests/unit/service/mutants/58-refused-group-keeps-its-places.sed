# src/service/promises.c, found by test_promises
s/(group->refused \&\& now_ns/(!group->members \&\& now_ns/
