/* SPDX-License-Identifier: Apache-2.0 */
/* A PCI address names the same device after being written and read again. */
#include "fuzz.h"
#include "gpushare/limit/region.h"

FUZZ_TEXT(input)
{
    struct gs_pci pci = {.domain = 77}, again;
    char text[32];
    if (!gs_pci_parse(input.at, input.len, &pci)) {
        FUZZ_CHECK(pci.domain == 77);
        return;
    }
    FUZZ_CHECK(pci.device <= 31 && pci.function <= GS_PCI_ANY_FUNCTION);
    int len = snprintf(text, sizeof(text), "%04X:%02x:%02x", pci.domain, pci.bus, pci.device);
    if (pci.function != GS_PCI_ANY_FUNCTION)
        len += snprintf(text + len, sizeof(text) - (size_t)len, ".%u", pci.function);
    FUZZ_CHECK(gs_pci_parse(text, (size_t)len, &again) && gs_pci_same(&pci, &again));
    FUZZ_CHECK(pci.function == again.function);
}
