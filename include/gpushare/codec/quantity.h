/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#include "gpushare/base/slice.h"

/*
 * Kubernetes quantities: "4", "0.5", "1500m", "16Gi", "1e3"
 * (k8s.io/apimachinery/pkg/api/resource/quantity.go: sign, digits with at most one point, then one
 * of n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or e/E with an exponent). Exact integer arithmetic.
 * *ret is untouched unless the answer is OK.
 */
enum gs_quantity {
    GS_QUANTITY_OK,
    GS_QUANTITY_MALFORMED,
    GS_QUANTITY_FRACTION,  /* GS_QUANTITY_WHOLE: not a whole number */
    GS_QUANTITY_TOO_LARGE, /* of either sign; beyond int64 in the requested unit */
};

enum gs_quantity_as {
    GS_QUANTITY_MILLI, /* in thousandths, rounded away from zero, as Kubernetes does (MilliValue) */
    GS_QUANTITY_VALUE, /* in ones, rounded away from zero (Value) */
    GS_QUANTITY_WHOLE, /* in ones; what is no whole number is refused */
};

enum gs_quantity gs_quantity_read(struct gs_slice text, enum gs_quantity_as as, int64_t *ret);

/* "is not a quantity", "is not an integer", "is too large"; "" for OK. Static. */
const char *gs_quantity_why(enum gs_quantity result);
