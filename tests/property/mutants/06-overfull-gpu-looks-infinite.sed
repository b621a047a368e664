# src/core/view.c: the original's unsigned subtraction
s/used_units < gpu->total_units ? \(.*\) : 0;/\1;/
