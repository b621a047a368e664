# src/service/offers.c, found by test_offers
s/offers->stale = gs_pod_revision(sent->pod);/(void)sent;/
