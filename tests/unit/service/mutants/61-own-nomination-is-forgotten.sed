# src/service/promises.c, found by test_promises
s/^    gs_holds_again(service, uid);$//
