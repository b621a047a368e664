# src/service/term.c, found by test_term
s/ && !atomic_load(&term->listing_ns) && is_own/ \&\& is_own/
