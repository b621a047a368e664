/* SPDX-License-Identifier: Apache-2.0 */
#include "device_plugin/footprint.h"

#include <link.h>
#include <malloc.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

void footprint_limit(void)
{
    mallopt(M_ARENA_MAX, 1); /* threads with little to do must not keep a heap each */
    mallopt(M_TRIM_THRESHOLD, 64 << 10);
    mallopt(M_MMAP_THRESHOLD, 64 << 10);
}

/* Code is mapped from its file and never written to, so dropping its pages loses nothing. */
static int drop_code(struct dl_phdr_info *object, size_t size, void *data)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X) || (segment->p_flags & PF_W))
            continue;
        uintptr_t from = (object->dlpi_addr + segment->p_vaddr) & ~(page - 1);
        uintptr_t to = (object->dlpi_addr + segment->p_vaddr + segment->p_filesz) & ~(page - 1);
        if (to > from)
            madvise((void *)from, to - from, MADV_DONTNEED);
    }
    return 0;
}

void footprint_trim(void)
{
    malloc_trim(0);
    dl_iterate_phdr(drop_code, NULL);
}
