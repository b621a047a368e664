# src/service/filter.c, found by test_gang_cycles
s/return args->has_names \&\& gs_promises_concern/return !args->has_names \&\& gs_promises_concern/
