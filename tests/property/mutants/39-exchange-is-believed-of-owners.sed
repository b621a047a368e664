# src/core/ledger_claims.c: the word of an older plugin counts where a newer one tells
s/ && !claim->from_moved && !node->tells_moved;/ \&\& !claim->from_moved;/
