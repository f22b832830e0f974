/* Reasons in words, see why.h. */
#include "host/why.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "host/disk_io.h"

int zc_why_set(char ret_why[ZC_WHY_MAX], int err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(ret_why, ZC_WHY_MAX, format, args);
    va_end(args);
    return err;
}

int zc_why_errno(char ret_why[ZC_WHY_MAX], const char *what)
{
    int e = errno;
    return zc_why_set(ret_why, zc_disk_io_err(e), "%s: %s", what, strerror(e));
}
