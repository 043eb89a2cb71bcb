// The system's SQLite, as a module, with the few calls that Swift cannot make: variadic functions, and function-pointer
// constants that are casts of small integers.
#ifndef STRATA_SQLITE_SHIM_H
#define STRATA_SQLITE_SHIM_H

#include <sqlite3.h>

#ifdef __linux__
// It is declared here because <sched.h> declares it only with _GNU_SOURCE.
extern int sched_getcpu(void);
#else
#include <pthread.h>
#include <stdint.h>
#endif

// SQLite counts its memory under one process-wide lock, for which readers on several threads would queue. The call is
// refused (which does no harm) if other code has already started the library.
static inline int strata_sqlite3_disable_memory_statistics(void) {
    return sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

// Sets one of the on/off switches of sqlite3_db_config.
static inline int strata_sqlite3_set_switch(sqlite3 *db, int which, int on) {
    return sqlite3_db_config(db, which, on, (int *)0);
}

// These bind text and blobs that the caller keeps in place until the statement is reset.
static inline int strata_sqlite3_bind_text_static(sqlite3_stmt *s, int i, const void *p, sqlite3_uint64 n) {
    return sqlite3_bind_text64(s, i, (const char *)p, n, SQLITE_STATIC, SQLITE_UTF8);
}
static inline int strata_sqlite3_bind_blob_static(sqlite3_stmt *s, int i, const void *p, sqlite3_uint64 n) {
    return sqlite3_bind_blob64(s, i, p, n, SQLITE_STATIC);
}

// These bind or return text and blobs that SQLite copies.
static inline int strata_sqlite3_bind_text_copy(sqlite3_stmt *s, int i, const void *p, sqlite3_uint64 n) {
    return sqlite3_bind_text64(s, i, (const char *)p, n, SQLITE_TRANSIENT, SQLITE_UTF8);
}
static inline int strata_sqlite3_bind_blob_copy(sqlite3_stmt *s, int i, const void *p, sqlite3_uint64 n) {
    return sqlite3_bind_blob64(s, i, p, n, SQLITE_TRANSIENT);
}
static inline void strata_sqlite3_result_text_copy(sqlite3_context *c, const void *p, sqlite3_uint64 n) {
    sqlite3_result_text64(c, (const char *)p, n, SQLITE_TRANSIENT, SQLITE_UTF8);
}
static inline void strata_sqlite3_result_blob_copy(sqlite3_context *c, const void *p, sqlite3_uint64 n) {
    sqlite3_result_blob64(c, p, n, SQLITE_TRANSIENT);
}

// The word in which SQLite counts the commits to a database in WAL mode, for all processes. It is in the index of the
// log, which the connection has mapped once it has read. It is null if there is none. Its address does not change until
// the connection is closed.
static inline const unsigned *strata_sqlite3_commit_counter(sqlite3 *db) {
    sqlite3_file *file = 0;
    void volatile *index = 0;
    if (sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK || !file || !file->pMethods) return 0;
    if (file->pMethods->iVersion < 2 || !file->pMethods->xShmMap) return 0;
    // This is the first region, which exists already: 32 KiB. If it may only be read, SQLite reports that, and maps it
    // anyway.
    int code = file->pMethods->xShmMap(file, 0, 32768, 0, &index);
    if ((code != SQLITE_OK && code != SQLITE_READONLY) || !index) return 0;
    const unsigned *words = (const unsigned *)index;
    // The first word is the version of the format.
    return words[0] == 3007000 ? words + 2 : 0;
}
static inline unsigned strata_load(const unsigned *word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }

// A number that threads on different processors rarely share: that of the processor, or else one derived from the
// thread.
static inline unsigned strata_current_processor(void) {
#ifdef __linux__
    int processor = sched_getcpu();
    return processor < 0 ? 0 : (unsigned)processor;
#else
    return (unsigned)((uintptr_t)pthread_self() >> 12) * 2654435761u >> 16;
#endif
}

#endif
