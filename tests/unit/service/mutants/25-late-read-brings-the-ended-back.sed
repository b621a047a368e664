# src/service/sync.c, found by test_sync
s/(read \&\& gs_recent_has(&store->ended_before, uid))/false/
