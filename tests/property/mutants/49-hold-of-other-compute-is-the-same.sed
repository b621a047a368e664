# src/core/ledger_holds.c: a nominated pod that is another now keeps the compute that it asked for before
s/old->cores_pct == hold->cores_pct/true/
