/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include "gpushare/limit/region.h"

static void an_address_is_parsed_or_refused(void **state)
{
    static const struct {
        const char *row, *text;
        bool ok;
        struct gs_pci pci;
    } rows[] = {
        {"a region's, without function", "0000:41:00", true, {0, 0x41, 0, GS_PCI_ANY_FUNCTION}},
        {"sysfs", "0000:c1:1f.7", true, {0, 0xc1, 0x1f, 7}},
        {"NVML, eight digits and upper case", "0001AB00:C1:00.0", true, {0x1ab00, 0xc1, 0, 0}},
        {"largest domain", "ffffffff:ff:1f.7", true, {0xffffffff, 0xff, 0x1f, 7}},
        {"five digits", "10000:01:00.0", true, {0x10000, 1, 0, 0}},
        {"empty", "", false, {0}},
        {"no domain", "41:00.0", false, {0}},
        {"three digits", "000:41:00.0", false, {0}},
        {"nine digits", "000000000:41:00.0", false, {0}},
        {"bus of one digit", "0000:4:00.0", false, {0}},
        {"device above 31", "0000:41:20.0", false, {0}},
        {"function above 7", "0000:41:00.8", false, {0}},
        {"a dot without function", "0000:41:00.", false, {0}},
        {"more behind it", "0000:41:00.0x", false, {0}},
        {"no hexadecimal", "0000:4g:00.0", false, {0}},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_pci pci = {77, 77, 7, 7};
        row_equal(r->row, gs_pci_parse(r->text, strlen(r->text), &pci), r->ok);
        struct gs_pci expected = r->ok ? r->pci : (struct gs_pci){77, 77, 7, 7};
        row_equal(r->row, pci.domain, expected.domain);
        row_equal(r->row, pci.bus, expected.bus);
        row_equal(r->row, pci.device, expected.device);
        row_equal(r->row, pci.function, expected.function);
    }
}

#define TWO "nvidia/0000:41:00/vidmem 1\nnvidia/0000:c1:00/vidmem 1\n"

static void a_gpu_has_exactly_one_region_or_none(void **state)
{
    static const struct {
        const char *row;
        const char *addresses[3]; /* the first one's region is asked for */
        const char *capacity;
        enum gs_enforced state;
        const char *name;
    } rows[] = {
        {"NVML's form", {"00000000:41:00.0"}, TWO, GS_ENFORCED_DMEM, "nvidia/0000:41:00/vidmem"},
        {"upper case", {"00000000:C1:00.0"}, TWO, GS_ENFORCED_DMEM, "nvidia/0000:c1:00/vidmem"},
        {"upper case in the region",
         {"0000:c1:00.0"},
         "nvidia/0000:C1:00/vidmem 1\n",
         GS_ENFORCED_DMEM,
         "nvidia/0000:C1:00/vidmem"},
        {"the address is the last component",
         {"0000:79:00.0"},
         "vram/0000:79:00.0 1\n",
         GS_ENFORCED_DMEM,
         "vram/0000:79:00.0"},
        {"no regions", {"0000:41:00.0"}, "", GS_ENFORCED_ABSENT, ""},
        {"another domain", {"0001:41:00.0"}, TWO, GS_ENFORCED_ABSENT, ""},
        {"another function", {"0000:79:00.0"}, "drm/0000:79:00.1/vram 1\n", GS_ENFORCED_ABSENT, ""},
        {"only a part of a component",
         {"0000:41:00.0"},
         "nvidia/x0000:41:00/vidmem 1\n",
         GS_ENFORCED_ABSENT,
         ""},
        {"a card of two tiles",
         {"0000:79:00.0"},
         "drm/0000:79:00.0/vram0 1\ndrm/0000:79:00.0/vram1 1\n",
         GS_ENFORCED_AMBIGUOUS,
         ""},
        {"two instances of one card",
         {"0000:41:00.0", "0000:c1:00.0", "00000000:41:00.0"},
         TWO,
         GS_ENFORCED_SHARED,
         ""},
        {"two functions of one card, a region without function",
         {"0000:41:00.0", "0000:41:00.1"},
         TWO,
         GS_ENFORCED_SHARED,
         ""},
        {"two functions of one card, a region each",
         {"0000:79:00.1", "0000:79:00.0"},
         "drm/0000:79:00.0/vram 1\ndrm/0000:79:00.1/vram 1\n",
         GS_ENFORCED_DMEM,
         "drm/0000:79:00.1/vram"},
        {"beside a GPU without address",
         {"0000:41:00.0", NULL, ""},
         TWO,
         GS_ENFORCED_DMEM,
         "nvidia/0000:41:00/vidmem"},
        {"no address", {NULL, "0000:41:00.0"}, TWO, GS_ENFORCED_NO_ADDRESS, ""},
        {"an address that is none", {"card0"}, TWO, GS_ENFORCED_NO_ADDRESS, ""},
    };
    GS_FOR_EACH_ROW (r, rows) {
        struct gs_dmem_line lines[GS_DMEM_LINES_MAX];
        size_t count = 0;
        assert_int_equal(gs_dmem_parse(gs_slice_of(r->capacity), lines, &count, NULL), 0);
        struct gs_region region = gs_region_of(r->addresses, 3, 0, lines, count);
        row_equal(r->row, region.state, r->state);
        row_text(r->row, region.name, r->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_is_parsed_or_refused),
        cmocka_unit_test(a_gpu_has_exactly_one_region_or_none),
    };
    return GS_RUN(tests);
}
