# src/core/place.c, found by test_promises
s/if (promised \&\& slot == view->slot/if (!promised \&\& slot == view->slot/
