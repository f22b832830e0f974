/* Names of the error codes in base/err.h. The host adds cause and remedy where it logs. */
#include "base/err.h"

const char *zc_err_text(int err)
{
    switch ((enum zc_err)err) {
    case ZC_OK:
        return "ok";
    case ZC_ENOMEM:
        return "out of memory";
    case ZC_ENOSPC:
        return "no space left";
    case ZC_EIO:
        return "input/output error";
    case ZC_EINVAL:
        return "unusable argument or configuration";
    case ZC_ENOENT:
        return "not found";
    case ZC_EEXIST:
        return "already there";
    case ZC_EBUSY:
        return "in use by somebody else";
    case ZC_EACCES:
        return "not permitted";
    case ZC_EBADMSG:
        return "damaged or malformed data";
    case ZC_ELIMIT:
        return "limit reached";
    case ZC_EAGAIN:
        return "not now, try again";
    case ZC_ECLOSED:
        return "closed by the other side";
    case ZC_ETIMEDOUT:
        return "timed out";
    case ZC_EMFILE:
        return "out of file descriptors";
    }
    return "unknown error";
}
