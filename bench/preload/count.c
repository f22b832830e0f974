/*
 * Put before the C library of a hub with LD_PRELOAD: counts allocations and copies, in a file that
 * bench/count maps too (ZMQCAT_COUNT names it). The order of the numbers is that of its COUNTERS.
 *
 * Only calls are counted: what the compiler has written out in place, for a size that it knows, is
 * no call. Linux with glibc.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ALLOCATIONS, ALLOCATED, FREES, COPIES, COPIED, COUNTERS };

static uint64_t before[COUNTERS]; /* until the file is there, and without one */
static uint64_t *counters = before;

static void count(int which, size_t n)
{
    __atomic_fetch_add(&counters[which], n, __ATOMIC_RELAXED);
}

__attribute__((constructor)) static void map(void)
{
    const char *path = getenv("ZMQCAT_COUNT");
    int fd = path == NULL ? -1 : open(path, O_RDWR | O_CLOEXEC);
    void *at = MAP_FAILED;
    if (fd >= 0)
        at = mmap(NULL, sizeof(before), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at != MAP_FAILED)
        counters = at;
    if (fd >= 0)
        close(fd);
}

/* What glibc keeps behind the names that are taken here. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *old);

static void *counted(void *got, size_t size)
{
    count(ALLOCATIONS, 1);
    count(ALLOCATED, size);
    return got;
}

void *malloc(size_t size)
{
    return counted(__libc_malloc(size), size);
}

void *calloc(size_t n, size_t size)
{
    return counted(__libc_calloc(n, size), n * size);
}

void *realloc(void *old, size_t size)
{
    return counted(__libc_realloc(old, size), size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return counted(__libc_memalign(alignment, size), size);
}

int posix_memalign(void **ret_at, size_t alignment, size_t size)
{
    *ret_at = counted(__libc_memalign(alignment, size), size);
    return *ret_at == NULL ? ENOMEM : 0;
}

void free(void *old)
{
    if (old != NULL)
        count(FREES, 1);
    __libc_free(old);
}

/* Plain loops would be made calls of these very functions again; the processor's own string
 * instructions are not. */
static void *forward(void *to, const void *from, size_t n)
{
#if defined(__x86_64__)
    void *at = to;
    __asm__ volatile("rep movsb" : "+D"(at), "+S"(from), "+c"(n) : : "memory");
#else
    volatile uint8_t *at = to;
    for (size_t i = 0; i < n; i++)
        at[i] = ((const uint8_t *)from)[i];
#endif
    return to;
}

void *memmove(void *to, const void *from, size_t n)
{
    volatile uint8_t *at = to;
    count(COPIES, 1);
    count(COPIED, n);
    if ((uintptr_t)to - (uintptr_t)from >= n)
        return forward(to, from, n);
    while (n-- > 0)
        at[n] = ((const uint8_t *)from)[n];
    return to;
}

void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
    count(COPIES, 1);
    count(COPIED, n);
    return forward(to, from, n);
}

void *__memcpy_chk(void *restrict to, const void *restrict from, size_t n, size_t room);
void *__memmove_chk(void *to, const void *from, size_t n, size_t room);

void *__memcpy_chk(void *restrict to, const void *restrict from, size_t n, size_t room)
{
    if (n > room)
        abort();
    return memcpy(to, from, n);
}

void *__memmove_chk(void *to, const void *from, size_t n, size_t room)
{
    if (n > room)
        abort();
    return memmove(to, from, n);
}
