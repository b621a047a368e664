/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/codec/scan.h"

#include "gpushare/base/num.h"

/* Numbers, checked against the type that takes them. */

bool gs_scan_i64(struct gs_scan *scan, const char *what, int64_t *ret)
{
    struct gs_slice number;
    if (!gs_scan_number(scan, what, &number))
        return false;
    if (gs_parse_i64(number.at, number.len, ret))
        return true;
    gs_scan_refuse(scan, what, "is not an integer in range");
    return false;
}

bool gs_scan_i32(struct gs_scan *scan, const char *what, int32_t *ret)
{
    int64_t wide;
    if (!gs_scan_i64(scan, what, &wide))
        return false;
    if (wide < INT32_MIN || wide > INT32_MAX)
        return gs_scan_refuse(scan, what, "is not an integer in range");
    *ret = (int32_t)wide;
    return true;
}
