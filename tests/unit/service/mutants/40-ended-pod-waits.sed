# src/service/sync.c, found by test_wake
s/!ended && //
