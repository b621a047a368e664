# src/service/sync.c, found by test_wake
s/bool same = same_gpus(view, node);/bool same = view \&\& view->sum_total_units;/
