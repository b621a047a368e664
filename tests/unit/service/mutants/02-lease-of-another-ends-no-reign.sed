# src/service/election.c, found by test_election
/if (is_taken(election, now_ns)) {/,/}/s/atomic_store.*;//
