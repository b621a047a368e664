# src/core/view.c: a GPU takes one pod more than it may have
s/pods >= gpu->max_pods/pods > gpu->max_pods/
