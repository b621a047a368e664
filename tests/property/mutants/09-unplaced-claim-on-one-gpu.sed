# src/core/ledger_claims.c: a pod without index is charged to one GPU only
s/charged = has.could_hold |/charged = (has.could_hold \& -has.could_hold) |/
