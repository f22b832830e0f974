/* serve and join: become zmqcat-hub or zmqcat-spoke, the one beside this program, else the one in
 * PATH. */
#include "say.h"
#include "verbs.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif

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

static int become(const char *program, char **argv)
{
    char path[PATH_MAX + 32], why[200];
    const char *verb = argv[0];
    argv[0] = (char *)(uintptr_t)program;
    signal(SIGPIPE, SIG_DFL);
    if (own_path(path, PATH_MAX)) {
        char *slash = strrchr(path, '/');
        strcpy(slash != NULL ? slash + 1 : path, program);
        execv(path, argv);
    }
    execvp(program, argv);
    snprintf(why, sizeof why, "cannot start %s: %s", program, strerror(errno));
    zc_say_fail(1, verb, NULL, why);
    zc_say_hint("install it beside zmqcat or into the PATH");
    return 1;
}

/* An argument before `--`. */
static bool has(char **argv, const char *option)
{
    for (; *argv != NULL && strcmp(*argv, "--") != 0; argv++)
        if (strcmp(*argv, option) == 0)
            return true;
    return false;
}

int zc_serve_hub(int argc, char **argv)
{
    if (has(argv, "--local"))
        return become("zmqcat-hub", argv);
    char **more = calloc((size_t)argc + 2, sizeof *more);
    if (more == NULL)
        return zc_say_fail(1, argv[0], NULL, "out of memory");
    more[0] = argv[0];
    more[1] = (char *)(uintptr_t) "--print-token";
    memcpy(more + 2, argv + 1, (size_t)argc * sizeof *more); /* with the NULL at the end */
    int status = become("zmqcat-hub", more);
    free(more);
    return status;
}

int zc_serve_spoke(int argc, char **argv)
{
    (void)argc;
    return become("zmqcat-spoke", argv);
}
