# src/service/bind.c, found by test_bind
s/GS_CLAIM_CONFIRMED && !same_node)/GS_CLAIM_CONFIRMED \&\& false)/
