/* SPDX-License-Identifier: Apache-2.0 */
/* The three readings of a quantity agree. */
#include "fuzz.h"
#include "gpushare/codec/quantity.h"

FUZZ_TEXT(text)
{
    int64_t whole = 0, value = 0, milli = 0, scaled;
    enum gs_quantity as_whole = gs_quantity_read(text, GS_QUANTITY_WHOLE, &whole);
    enum gs_quantity as_value = gs_quantity_read(text, GS_QUANTITY_VALUE, &value);
    enum gs_quantity as_milli = gs_quantity_read(text, GS_QUANTITY_MILLI, &milli);
    FUZZ_CHECK((as_whole == GS_QUANTITY_MALFORMED) == (as_value == GS_QUANTITY_MALFORMED));
    FUZZ_CHECK((as_milli == GS_QUANTITY_MALFORMED) == (as_value == GS_QUANTITY_MALFORMED));
    if (as_whole == GS_QUANTITY_OK) {
        FUZZ_CHECK(as_value == GS_QUANTITY_OK && value == whole);
        bool fits = !__builtin_mul_overflow(whole, (int64_t)1000, &scaled);
        FUZZ_CHECK((as_milli == GS_QUANTITY_OK) == fits);
        FUZZ_CHECK(!fits || milli == scaled);
    }
    if (as_milli == GS_QUANTITY_OK) {
        int64_t up = milli / 1000 + (milli % 1000 > 0) - (milli % 1000 < 0);
        FUZZ_CHECK(as_value == GS_QUANTITY_OK && value == up);
    }
}
