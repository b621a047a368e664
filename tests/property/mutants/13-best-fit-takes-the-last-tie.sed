# src/core/placement.c: ties go to the highest index
s/a->free_units < b->free_units :/a->free_units <= b->free_units :/
