# src/service/preferences.c, found by test_candidates
s/said->nodes\[slot\] = now;/if (node)\n        said->nodes[slot] = now;/
