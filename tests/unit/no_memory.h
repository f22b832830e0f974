/*
 * Allocations that fail: with `armed` the one after `left` others does, and `lasting` all behind
 * it. For programs that are built with the linker's --wrap of malloc, calloc and realloc.
 */
#ifndef ZC_TESTS_UNIT_NO_MEMORY_H
#define ZC_TESTS_UNIT_NO_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);

static bool armed, lasting;
static long left; /* allocations before the one that fails */
static bool failed;

static bool refused(void)
{
    if (!armed || left-- > 0 || (failed && !lasting))
        return false;
    return failed = true;
}

void *__wrap_malloc(size_t n)
{
    return refused() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return refused() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
    return refused() ? NULL : __real_realloc(p, n);
}

/* From now on the allocation after n others fails, or all behind it. */
static inline void no_memory(long n, bool for_good)
{
    left = n;
    lasting = for_good;
    failed = false;
}

/* A call whose own allocations count, and nobody else's. */
#define ALONE(call)                                                                                \
    __extension__({                                                                                \
        armed = true;                                                                              \
        __auto_type got_ = (call);                                                                 \
        armed = false;                                                                             \
        got_;                                                                                      \
    })
#define ALONE_VOID(call) (armed = true, (call), armed = false)

#endif
