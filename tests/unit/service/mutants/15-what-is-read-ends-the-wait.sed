# src/service/sync.c, found by test_term
/^int gs_sync_pod/,/^}/s/return take_in/gs_term_shown(service, pod, false); return take_in/
