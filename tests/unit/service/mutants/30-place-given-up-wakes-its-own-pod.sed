# src/service/offers.c, found by test_offers
s/waiter->offers.given_up_at = store->frees;/;/
