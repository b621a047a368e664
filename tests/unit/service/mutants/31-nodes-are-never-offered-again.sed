# src/service/offers.c, found by test_offers
s/ && offers->tried\[i\].print == print//
