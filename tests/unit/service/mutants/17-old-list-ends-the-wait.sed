# src/service/term.c, found by test_term
s/atomic_load(&term->listed_ns) > term->begun_ns/atomic_load(\&term->listed_ns) > INT64_MIN/
