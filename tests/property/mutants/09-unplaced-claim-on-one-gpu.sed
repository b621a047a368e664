# src/core/ledger_claims.c: a pod without index is charged to one GPU only
s/return could_hold ? could_hold :/return could_hold ? could_hold \& -could_hold :/
