# src/service/bind.c, found by test_bind
s/= leads_until_ns < given_up_ns ? leads_until_ns : given_up_ns/= given_up_ns/
