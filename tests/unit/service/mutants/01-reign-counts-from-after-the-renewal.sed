# src/service/election.c, found by test_election
s/lead_until(election, now_ns, now_ns + GS_ELECTION_DEADLINE_NS)/lead_until(election, now_ns, gs_clock_now_ns(election->config.clock) + GS_ELECTION_DEADLINE_NS)/
