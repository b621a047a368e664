# src/core/ledger.c: the list of a node that went is kept
s/^    entry->moved_count = 0;$//;s/^    free(entry->moved);$//;s/^    entry->moved = NULL;$//
