# src/core/placement.c: the quick answer does not look at compute
s/ \&\& !ask->cores_pct \&\&$/ \&\&/
