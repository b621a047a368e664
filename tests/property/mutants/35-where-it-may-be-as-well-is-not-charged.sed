# src/core/ledger_claims.c: where it may be as well is not charged
s/return claim->gpus | also;/return claim->gpus;/
