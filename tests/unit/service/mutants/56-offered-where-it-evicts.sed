# src/service/offers.c, found by test_offers
s/may = !offers->evicts && /may = /
