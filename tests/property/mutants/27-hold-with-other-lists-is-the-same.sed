# src/core/ledger_holds.c: a nominated pod whose lists changed keeps the old ones
s/old->priority == hold->priority && same_texts(old->uid, texts)/old->priority == hold->priority \&\& (same_texts(old->uid, texts) || true)/
