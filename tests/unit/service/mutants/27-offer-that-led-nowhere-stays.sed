# src/service/offers.c, found by test_offers
s/now_ns - offers->since_ns >= GS_OFFER_NS/false/
