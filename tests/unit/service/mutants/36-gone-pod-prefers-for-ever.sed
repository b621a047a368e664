# src/service/preferences.c, found by test_candidates
s/said->namespaces\[pod->space\].pods--;/;/
