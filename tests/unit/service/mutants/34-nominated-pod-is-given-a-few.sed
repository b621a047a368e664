# src/service/candidates.c, found by test_candidates
s/ || args->pod.nominated_node\[0\]//
