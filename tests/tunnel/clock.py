"""A shim under libc that moves the wall clock of one process."""
import os, struct, subprocess

import harness

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static volatile long long *moved;

__attribute__((constructor)) static void start(void)
{
    int fd = open(getenv("ZMQCAT_TEST_CLOCK"), O_RDONLY | O_CLOEXEC);
    moved = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
}

int clock_gettime(clockid_t id, struct timespec *t)
{
    static __typeof__(&clock_gettime) real;
    if (!real)
        real = (__typeof__(&clock_gettime))dlsym(RTLD_NEXT, "clock_gettime");
    int err = real(id, t);
    if (id == CLOCK_REALTIME && err == 0 && moved && moved != MAP_FAILED)
        t->tv_sec += *moved;
    return err;
}
"""


class WrongClock:
    """env is for the processes whose clock is wrong by what was given last."""

    def __init__(self, seconds=0):
        folder = harness.tempdir()
        source, library = os.path.join(folder, "shim.c"), os.path.join(folder, "shim.so")
        self.path = harness.write_file(os.path.join(folder, "moved"), bytes(4096))
        with open(source, "w") as f:
            f.write(SHIM)
        subprocess.run([*harness.CC, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"],
                       check=True)
        # verify_asan_link_order: a shim before the sanitizer's own runtime is meant.
        self.env = {"LD_PRELOAD": library, "ZMQCAT_TEST_CLOCK": self.path,
                    "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "")
                    + ":verify_asan_link_order=0"}
        self.move(seconds)

    def move(self, seconds):
        with open(self.path, "r+b") as f:
            f.write(struct.pack("q", seconds))
