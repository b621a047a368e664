# src/service/candidates.c, found by test_candidates
s/(uint64_t)turn \* left % equal/(uint64_t)0 * turn/
