# src/core/placement.c: what a nominated pod will need of a GPU that its victims leave is given away
s/^    gpu->free_units = later < gpu->free_units ? later : gpu->free_units;$/    (void)later;/
