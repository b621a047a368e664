# src/cluster/cluster.c, found by test_wake
s/bool same = same_gpus(gs_ledger_view(cluster->ledger, name), node), news/const struct gs_node_view *old = gs_ledger_view(cluster->ledger, name); bool same = old \&\& old->sum_total_units, news/
