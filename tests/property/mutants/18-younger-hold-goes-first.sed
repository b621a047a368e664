# src/core/ledger_holds.c: order among equals is turned around
s/a->order < b->order/a->order > b->order/
