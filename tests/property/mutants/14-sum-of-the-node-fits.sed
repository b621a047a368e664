# src/core/placement.c: a pod that fits the sum but no single GPU passes
s/view->max_free_units >= ask->units/view->sum_free_units >= ask->units/
