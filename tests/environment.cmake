# SPDX-License-Identifier: Apache-2.0
# ctest reads it before it starts a test: programs end where they break an invariant
# (include/gpushare/base/invariant.h).
set(ENV{GPUSHARE_INVARIANTS} fatal)
