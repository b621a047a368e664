# src/service/offers.c, found by test_offers
s/offers->next_slot = 0, offers->ended_ns = 0;/;/
