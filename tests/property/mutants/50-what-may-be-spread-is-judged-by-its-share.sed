# src/core/ledger_claims.c: of a record that is not believed, gpu-count says nothing
s/claim->gpus_max > claim->gpu_count ? claim->gpus_max/false ? claim->gpus_max/
