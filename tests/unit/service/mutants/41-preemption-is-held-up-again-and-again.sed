# src/service/offers.c, found by test_offers
s/offers->questions < GS_OFFER_QUESTIONS/true/
