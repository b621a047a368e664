# src/core/ledger.c: an unreadable list of moved pods takes the place of the one before
s/node->moved_error && node->moved_error\[0\]/false/
