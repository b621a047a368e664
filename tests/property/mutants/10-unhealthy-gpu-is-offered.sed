# src/core/view.c: health is ignored
s/\.usable = gs_gpu_usable(gpu)/.usable = gpu->schedulable/
