# src/core/ledger_claims.c: a claim's CPU is added when it goes
s/cpu_used_milli += sign \* /cpu_used_milli += /
