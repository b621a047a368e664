# src/service/offers.c, found by test_offers
s/offers->next_slot = waiter->slot + 1;/;/
