# src/service/candidates.c, found by test_candidates
s/gs_preferences_zone(said, scratch->slots\[i\])/0/
