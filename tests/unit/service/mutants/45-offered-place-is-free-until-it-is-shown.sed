# src/service/holds.c, found by test_offers
s/node = offered_place(service, pod->uid, room);/node = NULL;/
