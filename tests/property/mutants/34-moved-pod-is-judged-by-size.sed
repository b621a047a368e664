# src/core/ledger_claims.c: the plugin's word about a GPU that became too small is not believed
s/~(claim->from_moved ? has.present : has.large)/~has.large/
