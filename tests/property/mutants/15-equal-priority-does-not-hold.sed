# src/core/placement.c: a nominated pod loses its place to an equal one
s/hold->priority < seating->ask->priority/hold->priority <= seating->ask->priority/
