# src/service/term.c, found by test_term
s/term->next = term->last;/term->next = (struct gs_term_bind){0};/
