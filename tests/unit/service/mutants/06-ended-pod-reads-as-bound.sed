# src/service/bind_outcome.c, found by test_bind
s/ || gs_pod_terminal(&pod)//
