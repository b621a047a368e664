# src/service/bind_outcome.c, found by test_wake
s/(void)gs_holds_follow(service, &pod, NULL);//
