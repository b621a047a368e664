# src/core/ledger_claims.c: what could hold it is charged instead of its record, not beside it
s/charged = has.could_hold | (claim->gpus & has.present) | also;/charged = has.could_hold ? has.could_hold : claim->gpus \& has.present;/
