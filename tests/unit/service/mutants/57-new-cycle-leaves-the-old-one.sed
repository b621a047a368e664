# src/service/promises.c, found by test_promises
s/^    else if (member)$/    else if (!member->uid[0])/
