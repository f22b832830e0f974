/*
 * Process-wide settings. The core size is 0 because messages and secrets must not land in a file.
 */
#include "host/limits.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include <sodium.h>

#define FILES_FALLBACK 256
/* Linux allows a hard limit of 2^30; arrays indexed by descriptor stay small below this. */
#define FILES_MAX (1 << 20)
#define FILES_MIN 32
#define THREADS 4 /* of libuv's pool */
#define THREAD_BYTES_MAX (8u << 20)
#define MEMORY_BYTES (16u << 20) /* beside them */

static void fill_standard_fds(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            continue;
        /* The lowest free number, so this is fd itself. */
        if (open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY) < 0)
            return;
    }
}

/* Else glibc takes the largest block that was ever freed as a measure, and keeps twice as much. */
static void give_memory_back(void)
{
#ifdef __GLIBC__
    mallopt(M_TRIM_THRESHOLD, 2 << 20);
    mallopt(M_MMAP_THRESHOLD, 4 << 20);
#endif
}

/* macOS refuses more than a maximum of its own, which is less than its hard limit says. */
static int raise_files(void)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) < 0)
        return FILES_FALLBACK;
    rlim_t want = r.rlim_max > FILES_MAX ? FILES_MAX : r.rlim_max;
    for (; r.rlim_cur < want; want /= 2) {
        struct rlimit raised = {want, r.rlim_max};
        if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
            r.rlim_cur = want;
    }
    return r.rlim_cur > FILES_MAX ? FILES_MAX : (int)r.rlim_cur;
}

/* What libuv gives each of its threads. */
static size_t thread_bytes(void)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_STACK, &r) < 0 || r.rlim_cur == RLIM_INFINITY)
        return THREAD_BYTES_MAX;
    return r.rlim_cur;
}

/* libuv ends the process without a word when it gets no memory for its threads. */
static bool memory_there(void)
{
    struct rlimit r;
    size_t bytes = THREADS * thread_bytes() + MEMORY_BYTES;
    if (getrlimit(RLIMIT_AS, &r) < 0 || r.rlim_cur == RLIM_INFINITY)
        return true;
    void *p = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return false;
    munmap(p, bytes);
    return true;
}

const char *zc_limits_lacking(int files_max)
{
    if (files_max < FILES_MIN)
        return "too few open files are allowed: 32 at least (ulimit -n, LimitNOFILE=)";
    if (!memory_there())
        return "too little memory is allowed: raise the limit of the address space (ulimit -v, "
               "LimitAS=), or lower that of the stack (ulimit -s, LimitSTACK=)";
    return NULL;
}

void zc_limits_hold_signals(bool hold)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigprocmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

int zc_limits_apply(void)
{
    struct rlimit none = {0, 0};
    fill_standard_fds();
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file size limit is a full disk to us */
    setrlimit(RLIMIT_CORE, &none);
    give_memory_back();
    return raise_files();
}

int zc_limits_keep_secrets(void)
{
#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__)
    /* The leak checker of the sanitizers looks into the process as a debugger does. */
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
#endif
    return sodium_init() < 0 ? ZC_EIO : 0;
}
