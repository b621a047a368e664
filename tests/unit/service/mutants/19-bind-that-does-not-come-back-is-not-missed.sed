# src/service/term.c, found by test_term
s/if (next.uid \&\& now_ns/if (false \&\& now_ns/
