# src/cluster/cluster.c, found by test_sync
s/(read && gs_recent_has(&cluster->ended_before, uid))/false/
