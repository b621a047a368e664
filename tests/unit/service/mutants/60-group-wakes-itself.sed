# src/service/promises.c, found by test_promises
s/if (member->refused \&\& any)/if (!any)/
