# src/core/placement.c: who waits is told of memory where it is the number of pods
s/view->crowded && tally.roomy/false \&\& tally.roomy/
