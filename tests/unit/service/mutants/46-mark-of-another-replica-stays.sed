# src/service/offers.c, found by test_offers
/^static bool is_due_back/,/^}/s/return waiter->shown \&\& pod->offer\[0\] &&/return offers->since_ns \&\&/
