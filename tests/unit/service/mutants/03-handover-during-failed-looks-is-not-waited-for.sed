# src/service/election.c, found by test_election
s/election->looked_ns >= ran_out_ns - 2 \* GS_ELECTION_FOLLOW_NS/true/
