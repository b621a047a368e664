# src/service/promises.c, found by test_promises
s/return args->name_count == 1 \&\&/return false \&\&/
