// Where the current thread keeps the thread-local variables of a library.
#ifndef STRATA_THREAD_LOCALS_H
#define STRATA_THREAD_LOCALS_H

#include <stddef.h>
#include <stdint.h>

// The thread-local variables of a library; no words if they are not known.
struct strata_thread_locals {
    const uintptr_t *words;
    size_t count;
};

// The variables of the library, or the program, that contains the address.
struct strata_thread_locals strata_thread_locals_of(const void *address);

// A word that the current thread reads often; NULL before it was set.
extern _Thread_local const uintptr_t *strata_thread_word;

static inline const uintptr_t *strata_get_thread_word(void) { return strata_thread_word; }
static inline void strata_set_thread_word(const uintptr_t *word) { strata_thread_word = word; }

#endif
