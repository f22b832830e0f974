/* serve: becomes zmqcat-hub, the one beside this program, else the one in PATH. */
#include "say.h"
#include "verbs.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif

#define PROGRAM "zmqcat-hub"

/* The path of this program's file. False: unknown. */
static bool own_path(char *ret_path, size_t cap)
{
#ifdef __APPLE__
    uint32_t size = (uint32_t)cap;
    return _NSGetExecutablePath(ret_path, &size) == 0;
#else
    ssize_t n = readlink("/proc/self/exe", ret_path, cap);
    if (n <= 0 || (size_t)n >= cap)
        return false;
    ret_path[n] = '\0';
    return true;
#endif
}

int zc_serve_exec(char **argv)
{
    char path[PATH_MAX + sizeof PROGRAM];
    argv[0] = (char *)(uintptr_t)PROGRAM;
    signal(SIGPIPE, SIG_DFL);
    if (own_path(path, PATH_MAX)) {
        char *slash = strrchr(path, '/');
        strcpy(slash != NULL ? slash + 1 : path, PROGRAM);
        execv(path, argv);
    }
    execvp(PROGRAM, argv);
    fprintf(stderr, "zmqcat: serve: cannot start " PROGRAM ": %s\n", strerror(errno));
    zc_say_hint("install it beside zmqcat or into the PATH");
    return 1;
}
