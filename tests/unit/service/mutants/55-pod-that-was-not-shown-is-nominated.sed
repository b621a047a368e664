# src/service/offers.c, found by test_offers
s/waiter->shown && //
