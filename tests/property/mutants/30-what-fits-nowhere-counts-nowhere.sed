# src/core/ledger_claims.c: a claim larger than every GPU, without a record
s/return charged ? charged : has.present;/return charged;/
