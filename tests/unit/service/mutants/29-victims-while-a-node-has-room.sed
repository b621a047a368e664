# src/service/offers.c, found by test_offers
s/offers->owed = question->held_up;/question->held_up = false;/
