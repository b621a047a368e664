# src/service/bind_outcome.c, found by test_wake
s/gs_holds_again(service, uid);//
