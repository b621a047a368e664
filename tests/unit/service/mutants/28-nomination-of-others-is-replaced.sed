# src/service/offers.c, found by test_offers
/^static bool is_marked/,/^}/s/strcmp(pod->nominated_node, pod->offer) == 0/true/
