# src/core/ledger_holds.c: a nominated pod whose lists changed keeps the old ones: only the UID is compared
/^static bool same_texts(/,/^}/s/i < TEXTS/i < 1/
