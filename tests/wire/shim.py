"""A shim under libc that delays calls of the hub on its log, or lets them, or accept4, fail."""
import mmap, os, struct, subprocess

import harness

# Stands between the hub and libc for log segments and accept4 only; the test turns its knobs while
# it runs.
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

static volatile struct {
    int sync_ms, sync_fail, write_fail, write_errno, write_short; /* set by the test */
    int syncs, writes, syncing, failed;                          /* seen */
    int link_fail, unlink_fail, rename_fail, close_fail, no_link; /* set by the test */
    int accept_fail, accept_errno, accept_loses;                  /* set by the test */
} *k;

__attribute__((constructor)) static void start(void)
{
    int fd = open(getenv("ZMQCAT_TEST_SHIM"), O_RDWR | O_CLOEXEC);
    k = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
}

static int ours(int fd)
{
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n < 5 || !k || k == MAP_FAILED)
        return 0;
    path[n] = 0;
    return strstr(path, ".zlog") != NULL;
}

static int count(volatile int *knob)
{
    if (*knob == 0)
        return 0;
    return __sync_sub_and_fetch(knob, 1) == 0 || *knob < 0;
}

static int sync_ours(int fd)
{
    if (!ours(fd))
        return 0;
    __sync_fetch_and_add(&k->syncs, 1);
    __sync_fetch_and_add(&k->syncing, 1);
    if (k->sync_ms)
        usleep(k->sync_ms * 1000);
    __sync_fetch_and_sub(&k->syncing, 1);
    if (!count(&k->sync_fail))
        return 0;
    __sync_fetch_and_add(&k->failed, 1);
    errno = EIO;
    return -1;
}

#define REAL(name) __typeof__(&name) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
int fsync(int fd)
{
    REAL(fsync);
    return sync_ours(fd) ? -1 : real(fd);
}
int fdatasync(int fd)
{
    REAL(fdatasync);
    return sync_ours(fd) ? -1 : real(fd);
}
static int write_ours(int fd)
{
    if (!ours(fd))
        return 0;
    __sync_fetch_and_add(&k->writes, 1);
    if (!count(&k->write_fail))
        return 0;
    __sync_fetch_and_add(&k->failed, 1);
    errno = k->write_errno;
    return -1;
}
static size_t cut(int fd, size_t len)
{
    return len > 1 && ours(fd) && count(&k->write_short) ? len / 2 : len;
}
ssize_t write(int fd, const void *p, size_t n)
{
    REAL(write);
    return write_ours(fd) ? -1 : real(fd, p, cut(fd, n));
}
ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
    REAL(pwrite);
    return write_ours(fd) ? -1 : real(fd, p, cut(fd, n), at);
}
ssize_t pwrite64(int fd, const void *p, size_t n, off64_t at)
{
    REAL(pwrite64);
    return write_ours(fd) ? -1 : real(fd, p, cut(fd, n), at);
}
ssize_t pwritev(int fd, const struct iovec *v, int n, off_t at)
{
    REAL(pwritev);
    return write_ours(fd) ? -1 : real(fd, v, n, at);
}
ssize_t pwritev64(int fd, const struct iovec *v, int n, off64_t at)
{
    REAL(pwritev64);
    return write_ours(fd) ? -1 : real(fd, v, n, at);
}
static int named(const char *name, volatile int *knob)
{
    if (!k || k == MAP_FAILED || strstr(name, ".zlog") == NULL || !count(knob))
        return 0;
    __sync_fetch_and_add(&k->failed, 1);
    errno = EIO;
    return -1;
}
int linkat(int from, const char *a, int to, const char *b, int flags)
{
    REAL(linkat);
    if (k->no_link) {
        errno = EPERM; /* a file system without links */
        return -1;
    }
    return named(a, &k->link_fail) ? -1 : real(from, a, to, b, flags);
}
int unlinkat(int dir, const char *name, int flags)
{
    REAL(unlinkat);
    return named(name, &k->unlink_fail) ? -1 : real(dir, name, flags);
}
int renameat(int from, const char *a, int to, const char *b)
{
    REAL(renameat);
    return named(a, &k->rename_fail) ? -1 : real(from, a, to, b);
}
int close(int fd)
{
    REAL(close);
    int fails = k && k->close_fail && ours(fd) && count(&k->close_fail), r = real(fd);
    if (!fails)
        return r;
    __sync_fetch_and_add(&k->failed, 1);
    errno = EIO; /* it is closed all the same */
    return -1;
}
int accept4(int fd, struct sockaddr *a, socklen_t *n, int flags)
{
    REAL(accept4);
    if (!k || k == MAP_FAILED || !count(&k->accept_fail))
        return real(fd, a, n, flags);
    if (k->accept_loses)
        close(real(fd, a, n, flags)); /* nobody was there any more */
    __sync_fetch_and_add(&k->failed, 1);
    errno = k->accept_errno;
    return -1;
}
"""
KNOBS = ("sync_ms sync_fail write_fail write_errno write_short syncs writes syncing failed "
         "link_fail unlink_fail rename_fail close_fail no_link "
         "accept_fail accept_errno accept_loses").split()


class Shim:
    """The shim's knobs as attributes. *_fail and *_short: 0 off, n: the n-th call from now on, -1:
    every one."""

    def __init__(self):
        self.__dict__["dir"] = harness.tempdir()
        source, knobs = os.path.join(self.dir, "shim.c"), os.path.join(self.dir, "knobs")
        library = os.path.join(self.dir, "shim.so")
        with open(source, "w") as f:
            f.write(SHIM)
        subprocess.run([*harness.CC, "-shared", "-fPIC", "-O1", "-o", library,
                        source, "-ldl"], check=True)
        with open(knobs, "wb") as f:
            f.write(bytes(4096))
        with open(knobs, "r+b") as f:
            self.__dict__["map"] = mmap.mmap(f.fileno(), 4096)
        # verify_asan_link_order: a shim before the sanitizer's own runtime is meant.
        self.__dict__["env"] = {"LD_PRELOAD": library, "ZMQCAT_TEST_SHIM": knobs,
                                "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "")
                                + ":verify_asan_link_order=0"}

    def __getattr__(self, name):
        return struct.unpack_from("i", self.map, 4 * KNOBS.index(name))[0]

    def __setattr__(self, name, value):
        struct.pack_into("i", self.map, 4 * KNOBS.index(name), value)
