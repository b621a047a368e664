# src/lib/limit/keeper.c: a limit is written in PreStartContainer alone, which the kubelet calls only for
# containers that name the resource. The case first_container has to fail with it (scripts/node.sh --late).
s/} else if (writes(keeper, pod)) {/} else if (awaited \&\& writes(keeper, pod)) {/
