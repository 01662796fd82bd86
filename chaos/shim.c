/* Preloaded into each process of a machine: moves its clock, and makes the disk of the data directory read-only.

   CHAOS_STATE names a file of three 64-bit numbers: the seconds by which the clock is wrong, 1 while the disk is
   read-only, and the device number of that disk. Only calls through the C library are seen, and no mapped memory. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct state { volatile int64_t seconds, read_only, device; };
static struct state *state;

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("CHAOS_STATE");
    int file = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0) : -1;
    void *mapped = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *state, PROT_READ, MAP_SHARED, file, 0);
    if (mapped != MAP_FAILED) state = mapped;
    if (file >= 0) close(file);
}

/* The clock. */

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int failed = (int)syscall(SYS_clock_gettime, clock, now);
    if (!failed && state && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += state->seconds;
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec exact;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &exact)) return -1;
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *kept)
{
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
    if (kept) *kept = now.tv_sec;
    return now.tv_sec;
}

/* The disk. */

static int refused(const struct stat *found, int regular)
{
    if ((int64_t)found->st_dev != state->device || (regular && !S_ISREG(found->st_mode))) return 0;
    errno = EROFS;
    return 1;
}

static int no_write(int file)
{
    struct stat found;
    return state && state->read_only && !fstat(file, &found) && refused(&found, 1);
}

static int no_change(int folder, const char *path)
{
    char parent[4096];
    struct stat found;
    char *slash;
    if (!state || !state->read_only || strlen(path) >= sizeof parent) return 0;
    strcpy(parent, path);
    slash = strrchr(parent, '/');
    if (!slash) strcpy(parent, ".");
    else if (slash == parent) parent[1] = 0;
    else *slash = 0;
    return !fstatat(folder, parent, &found, 0) && refused(&found, 0);
}

static int no_open(int folder, const char *path, int flags)
{
    struct stat found;
    if (!state || !state->read_only) return 0;
    if (!fstatat(folder, path, &found, 0)) return flags & (O_WRONLY | O_RDWR | O_TRUNC) && refused(&found, 1);
    return flags & O_CREAT && no_change(folder, path);
}

#define THE_REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define UNLESS(cause, type, name, declared, given)                  \
    type name declared                                              \
    {                                                               \
        static __typeof__(&name) real;                              \
        if (!real) real = THE_REAL(name);                           \
        return (cause) ? (type)-1 : real given;                     \
    }
#define OPENS(name)                                                                         \
    int name(const char *path, int flags, ...)                                              \
    {                                                                                       \
        va_list rest;                                                                       \
        va_start(rest, flags);                                                              \
        mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, mode_t) : 0;           \
        va_end(rest);                                                                       \
        return no_open(AT_FDCWD, path, flags) ? -1 : THE_REAL(name)(path, flags, mode);     \
    }
#define OPENS_AT(name)                                                                      \
    int name(int folder, const char *path, int flags, ...)                                  \
    {                                                                                       \
        va_list rest;                                                                       \
        va_start(rest, flags);                                                              \
        mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, mode_t) : 0;           \
        va_end(rest);                                                                       \
        return no_open(folder, path, flags) ? -1 : THE_REAL(name)(folder, path, flags, mode); \
    }

OPENS(open)
OPENS(open64)
OPENS_AT(openat)
OPENS_AT(openat64)
UNLESS(no_write(file), ssize_t, write, (int file, const void *bytes, size_t size), (file, bytes, size))
UNLESS(no_write(file), ssize_t, pwrite, (int file, const void *bytes, size_t size, off_t at), (file, bytes, size, at))
UNLESS(no_write(file), ssize_t, pwrite64, (int file, const void *bytes, size_t size, off64_t at), (file, bytes, size, at))
UNLESS(no_write(file), ssize_t, writev, (int file, const struct iovec *parts, int count), (file, parts, count))
UNLESS(no_write(file), ssize_t, pwritev, (int file, const struct iovec *parts, int count, off_t at), (file, parts, count, at))
UNLESS(no_write(file), ssize_t, pwritev64, (int file, const struct iovec *parts, int count, off64_t at), (file, parts, count, at))
UNLESS(no_write(file), int, ftruncate, (int file, off_t size), (file, size))
UNLESS(no_write(file), int, ftruncate64, (int file, off64_t size), (file, size))
UNLESS(no_write(file), int, fallocate, (int file, int mode, off_t at, off_t size), (file, mode, at, size))
UNLESS(no_change(AT_FDCWD, path), int, unlink, (const char *path), (path))
UNLESS(no_change(AT_FDCWD, path), int, rmdir, (const char *path), (path))
UNLESS(no_change(AT_FDCWD, path), int, mkdir, (const char *path, mode_t mode), (path, mode))
UNLESS(no_change(AT_FDCWD, new), int, rename, (const char *old, const char *new), (old, new))
UNLESS(no_change(AT_FDCWD, new), int, link, (const char *old, const char *new), (old, new))

int posix_fallocate(int file, off_t at, off_t size)
{
    return no_write(file) ? EROFS : THE_REAL(posix_fallocate)(file, at, size);
}
