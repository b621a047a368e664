# src/service/offers.c, found by test_offers
s/offers->young_until_ns = look->now_ns + GS_OFFER_YOUNG_NS;/;/
