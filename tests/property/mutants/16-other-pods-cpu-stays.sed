# src/core/ledger_others.c: removal of a pod without GPU memory keeps its CPU
s/add_cpu(ledger, node, -(int64_t)other->cpu_milli);//
