# src/service/term.c, found by test_term
s/if (atomic_load(&term->listing_ns)) {/if (false) {/
