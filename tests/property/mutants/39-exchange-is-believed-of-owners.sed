# src/core/ledger_claims.c: the word of an older plugin counts where a newer one tells
s/ && !claim->told && !node->tells_moved;/ \&\& !claim->told;/
