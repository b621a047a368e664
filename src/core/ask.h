/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUSHARE_CORE_ASK_H
#define GPUSHARE_CORE_ASK_H

#include "gpushare/core/placement.h"

/* Takes the next entry off a comma list, without the blanks around it; false at its end. */
bool gs_list_next(struct gs_slice *rest, struct gs_slice *ret);

#endif
