/*
 * A stand-in for launchd behind the call of launch.h. What it hands over stands in the environment
 * variable ZMQCAT_TEST_LAUNCHD, as a list like "Listeners=3,4 Control=5"; `!` and an errno in place
 * of the descriptors are what the call returns. Without the variable launchd did not start the
 * process.
 */
#include "launch.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_MAX 8
#define FDS_MAX 64

/* What stands behind NAME=, or NULL. */
static const char *entry(const char *list, const char *name)
{
    size_t len = strlen(name);
    for (const char *p = list; p != NULL; p = strchr(p, ' ')) {
        p += strspn(p, " ");
        if (strncmp(p, name, len) == 0 && p[len] == '=')
            return p + len + 1;
    }
    return NULL;
}

/* Whether it was handed over before; it is from now on. */
static bool taken(const char *at)
{
    static const char *before[NAMES_MAX];
    static size_t count;
    for (size_t i = 0; i < count; i++)
        if (before[i] == at)
            return true;
    if (count < NAMES_MAX)
        before[count++] = at;
    return false;
}

int launch_activate_socket(const char *name, int **fds, size_t *cnt)
{
    const char *list = getenv("ZMQCAT_TEST_LAUNCHD"), *at = NULL;
    int got[FDS_MAX];
    size_t n = 0;
    if (list == NULL)
        return ESRCH;
    at = entry(list, name);
    if (at == NULL)
        return ENOENT;
    if (*at == '!')
        return atoi(at + 1);
    if (taken(at))
        return EALREADY;
    for (char *end; n < FDS_MAX && *at != '\0' && *at != ' '; at = *end == ',' ? end + 1 : end)
        got[n++] = (int)strtol(at, &end, 10);
    /* Exactly as large as promised, so that a sanitizer sees a read beyond. */
    *fds = malloc(n * sizeof(int));
    if (*fds == NULL)
        return ENOMEM;
    memcpy(*fds, got, n * sizeof(int));
    *cnt = n;
    return 0;
}
