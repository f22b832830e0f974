/*
 * ZC_ASSERT: for our own mistakes only, on in release builds. Never for what a peer, a disk or an
 * administrator can cause.
 */
#ifndef ZC_BASE_CHECK_H
#define ZC_BASE_CHECK_H

/* Traps; the debugger and the core limit (0 in the daemons) decide what remains. */
#define ZC_ASSERT(cond)                                                                            \
    do {                                                                                           \
        if (__builtin_expect(!(cond), 0))                                                          \
            __builtin_trap();                                                                      \
    } while (0)

#define ZC_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* The struct of type `type` whose member `member` is at `ptr`. */
#define ZC_CONTAINER(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#endif
