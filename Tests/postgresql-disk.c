/* A disk that is slow, or full, for a private PostgreSQL server: preloaded by Tests/postgresql-server.sh if STRATA_DISK=1 is set.
 *
 * In the folder that STRATA_DISK_FOLDER names, the file `full` lets every write that makes a file of tables longer fail with ENOSPC, as long as it is
 * there. The file `fail` lets the next flush of the log fail with EIO, and no flush of it ends while `hold` is there. STRATA_FLUSH is the number of
 * microseconds that each flush takes longer. STRATA_CLOCK is the number of seconds by which the server's clock is ahead. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

static void *original(const char *name) { return dlsym(RTLD_NEXT, name); }

/* Writes the path of a file in the folder that tells how the disk is, and tells whether it is there. */
static int is_told(const char *name, char *path, size_t size) {
    const char *folder = getenv("STRATA_DISK_FOLDER");
    if (folder == NULL) return 0;
    snprintf(path, size, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

/* Whether an open file is in a folder of the server's. */
static int is_in(int file, const char *folder) {
    char path[4096], link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return strstr(path, folder) != NULL;
}

/* Whether the disk has no room for what would be written to a file up to a place. A full disk of the log is another matter: it ends the server. */
static int is_full(int file, off_t end) {
    char path[4096];
    struct stat status;
    if (!is_told("full", path, sizeof path) || !is_in(file, "/base/")) return 0;
    return fstat(file, &status) == 0 && end > status.st_size;
}

/* Whether a flush of the log fails, once. */
static int fails(int file) {
    char path[4096];
    return is_told("fail", path, sizeof path) && is_in(file, "/pg_wal/") && unlink(path) == 0;
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t place) {
    static ssize_t (*next)(int, const void *, size_t, off_t);
    if (next == NULL) next = original("pwrite");
    if (is_full(file, place + (off_t)count)) return errno = ENOSPC, -1;
    return next(file, bytes, count, place);
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off_t place) { return pwrite(file, bytes, count, place); }

ssize_t pwritev(int file, const struct iovec *parts, int count, off_t place) {
    static ssize_t (*next)(int, const struct iovec *, int, off_t);
    if (next == NULL) next = original("pwritev");
    off_t end = place;
    for (int index = 0; index < count; index++) end += (off_t)parts[index].iov_len;
    if (is_full(file, end)) return errno = ENOSPC, -1;
    return next(file, parts, count, place);
}

ssize_t pwritev64(int file, const struct iovec *parts, int count, off_t place) { return pwritev(file, parts, count, place); }

int posix_fallocate(int file, off_t place, off_t length) {
    static int (*next)(int, off_t, off_t);
    if (next == NULL) next = original("posix_fallocate");
    return is_full(file, place + length) ? ENOSPC : next(file, place, length);
}

int posix_fallocate64(int file, off_t place, off_t length) { return posix_fallocate(file, place, length); }

static void wait_for_disk(void) {
    const char *time = getenv("STRATA_FLUSH");
    if (time != NULL) usleep((useconds_t)atoi(time));
}

/* Waits as long as flushes of the log are held. */
static void wait_while_held(int file) {
    char path[4096];
    while (is_told("hold", path, sizeof path) && is_in(file, "/pg_wal/")) usleep(1000);
}

int fdatasync(int file) {
    static int (*next)(int);
    if (next == NULL) next = original("fdatasync");
    wait_for_disk();
    wait_while_held(file);
    if (fails(file)) return errno = EIO, -1;
    return next(file);
}

int fsync(int file) {
    static int (*next)(int);
    if (next == NULL) next = original("fsync");
    wait_for_disk();
    return next(file);
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    static int (*next)(struct timeval *, void *);
    if (next == NULL) next = original("gettimeofday");
    const char *ahead = getenv("STRATA_CLOCK");
    int result = next(time, zone);
    if (ahead != NULL) time->tv_sec += atoi(ahead);
    return result;
}
