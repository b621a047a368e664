# src/service/bind.c, found by test_bind
s/ || gs_pod_terminal(&pod)//
