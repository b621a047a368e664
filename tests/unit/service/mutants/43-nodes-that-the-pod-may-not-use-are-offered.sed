# src/service/offers.c, found by test_offers
/^uint32_t gs_offers_find/,/^}/s/== GS_ELIGIBLE /!= 99 /
