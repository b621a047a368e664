# src/core/ledger_claims.c: the plugin's word about a GPU that became too small is not believed
s/~(claim->told ? has.present : has.large)/~has.large/
