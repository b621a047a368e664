# src/service/offers.c, found by test_offers
s/question->now_ns - offers->first_ns < GS_OFFER_NS/true/
