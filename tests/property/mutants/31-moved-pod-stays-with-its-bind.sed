# src/core/ledger_claims.c: the node's list is not followed when a pod is seen later
/^    fill(to, claim);/{n;s/follow_moved(ledger, to);//;}
