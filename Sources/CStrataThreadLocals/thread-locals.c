// Only with this <link.h> declares what it lists, and a Swift module must not see it: it changes other declarations.
#define _GNU_SOURCE
#include "CStrataThreadLocals.h"

_Thread_local const uintptr_t *strata_thread_word;

#ifdef __linux__
#include <link.h>

struct search {
    uintptr_t address;
    struct strata_thread_locals found;
};

static int visit(struct dl_phdr_info *library, size_t size, void *context) {
    struct search *search = context;
    int contains = 0;
    size_t bytes = 0;
    for (int i = 0; i < library->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &library->dlpi_phdr[i];
        if (part->p_type == PT_TLS) bytes = part->p_memsz;
        // If the address is before the part, then the difference is large, as it has no sign.
        if (part->p_type == PT_LOAD && search->address - (library->dlpi_addr + part->p_vaddr) < part->p_memsz) contains = 1;
    }
    if (!contains) return 0;
    // Old versions of the C library have no such field.
    if (size >= offsetof(struct dl_phdr_info, dlpi_tls_data) + sizeof(void *) && library->dlpi_tls_data) {
        search->found.words = library->dlpi_tls_data;
        search->found.count = bytes / sizeof(uintptr_t);
    }
    return 1;
}

struct strata_thread_locals strata_thread_locals_of(const void *address) {
    struct search search = {(uintptr_t)address, {NULL, 0}};
    dl_iterate_phdr(visit, &search);
    return search.found;
}
#else
struct strata_thread_locals strata_thread_locals_of(const void *address) {
    (void)address;
    return (struct strata_thread_locals){NULL, 0};
}
#endif
