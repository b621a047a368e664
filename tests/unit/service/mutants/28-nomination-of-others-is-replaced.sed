# src/service/offers.c, found by test_offers
s/if (!is_free(look->ledger, waiter))/if (false)/
