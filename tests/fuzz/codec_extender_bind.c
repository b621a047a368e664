/* SPDX-License-Identifier: Apache-2.0 */
/* A bind request has all of its four words, or none. */
#include "fuzz.h"
#include "gpushare/codec/extender.h"

FUZZ_TEXT(text)
{
    struct gs_binding_args args = {0};
    struct gs_error err = {0};
    int result = gs_codec_binding_args(text, &args, &err);
    FUZZ_CHECK((result == 0) == (err.code == GS_OK));
    FUZZ_CHECK((args.name[0] && args.ns[0] && args.uid[0] && args.node[0]) == (result == 0));
    gs_binding_args_release(&args);
}
