/* SPDX-License-Identifier: Apache-2.0 */
#include "gpushare/limit/region.h"

#include "gpushare/base/num.h"

/* Takes `least` to `most` hexadecimal digits off the text; false when there are fewer. */
static bool take_hex(struct gs_slice *text, size_t least, size_t most, uint32_t *ret)
{
    uint32_t value = 0;
    size_t len = 0;
    for (; len < text->len && len < most; len++) {
        const int digit = gs_hex_value(text->at[len]);
        if (digit < 0)
            break;
        value = value << 4 | (uint32_t)digit;
    }
    *text = (struct gs_slice){text->at + len, text->len - len};
    *ret = value;
    return len >= least;
}

static bool take(struct gs_slice *text, char c)
{
    if (text->len == 0 || *text->at != c)
        return false;
    *text = (struct gs_slice){text->at + 1, text->len - 1};
    return true;
}

bool gs_pci_parse(const char *text, size_t len, struct gs_pci *ret)
{
    struct gs_slice left = {text, len};
    uint32_t domain, bus, device, function = GS_PCI_ANY_FUNCTION;
    if (!take_hex(&left, 4, 8, &domain) || !take(&left, ':') || !take_hex(&left, 2, 2, &bus) ||
        !take(&left, ':') || !take_hex(&left, 2, 2, &device) || device > 31)
        return false;
    if (take(&left, '.') && (!take_hex(&left, 1, 1, &function) || function > 7))
        return false;
    if (left.len > 0)
        return false;
    *ret = (struct gs_pci){domain, (uint8_t)bus, (uint8_t)device, (uint8_t)function};
    return true;
}

bool gs_pci_same(const struct gs_pci *a, const struct gs_pci *b)
{
    return a->domain == b->domain && a->bus == b->bus && a->device == b->device &&
           (a->function == b->function || a->function == GS_PCI_ANY_FUNCTION ||
            b->function == GS_PCI_ANY_FUNCTION);
}

static bool parse_address(const char *text, struct gs_pci *ret)
{
    return text && gs_pci_parse(text, strlen(text), ret);
}

/* Some component of the region's name is this address. */
static bool names(struct gs_slice region, const struct gs_pci *gpu)
{
    while (region.len > 0) {
        struct gs_slice part = gs_slice_cut(&region, '/');
        struct gs_pci pci;
        if (gs_pci_parse(part.at, part.len, &pci) && gs_pci_same(&pci, gpu))
            return true;
    }
    return false;
}

/* Also another GPU whose address differs in the function alone, where the region names none. */
static bool is_shared(const char *const *addresses, size_t count, size_t which,
                      const struct gs_dmem_line *line)
{
    struct gs_pci other;
    for (size_t i = 0; i < count; i++)
        if (i != which && parse_address(addresses[i], &other) && names(line->region, &other))
            return true;
    return false;
}

struct gs_region gs_region_of(const char *const *addresses, size_t count, size_t which,
                              const struct gs_dmem_line *lines, size_t line_count)
{
    struct gs_region region = {.state = GS_ENFORCED_ABSENT};
    const struct gs_dmem_line *found = NULL;
    struct gs_pci gpu;
    if (!parse_address(addresses[which], &gpu))
        return (struct gs_region){.state = GS_ENFORCED_NO_ADDRESS};
    for (size_t i = 0; i < line_count; i++) {
        if (!names(lines[i].region, &gpu))
            continue;
        if (found)
            return (struct gs_region){.state = GS_ENFORCED_AMBIGUOUS};
        found = &lines[i];
    }
    if (!found)
        return region;
    if (is_shared(addresses, count, which, found))
        return (struct gs_region){.state = GS_ENFORCED_SHARED};
    region.state = GS_ENFORCED_DMEM;
    memcpy(region.name, found->region.at, found->region.len);
    return region;
}
