# src/core/ledger_claims.c: a pod that an older plugin exchanged is charged where it says alone
s/const bool anywhere = .*/const bool anywhere = false;/
