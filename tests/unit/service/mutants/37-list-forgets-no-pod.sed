# src/service/preferences.c, found by test_candidates
s/said->pods\[i\].seen = false;/;/
