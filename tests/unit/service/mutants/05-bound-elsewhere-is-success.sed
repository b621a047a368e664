# src/service/bind.c, found by test_bind
/claim.state == GS_CLAIM_CONFIRMED) {/,/}/s/if (!same_node)/if (false)/
