# src/core/ledger_holds.c: a nominated pod whose lists changed keeps the old ones
s/old->priority == hold->priority && memcmp(old->uid, texts, bytes) == 0/old->priority == hold->priority/
