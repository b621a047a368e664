# src/service/filter.c, found by test_gang_cycles
s/i != scratch->promised)/i > scratch->promised)/
