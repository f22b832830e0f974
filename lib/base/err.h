/*
 * Error codes of the core. A function that can fail for a reason of the world returns 0 or one of
 * these negative values and leaves its ret_ arguments untouched; what a peer sends is never an
 * error of the process.
 */
#ifndef ZC_BASE_ERR_H
#define ZC_BASE_ERR_H

enum zc_err {
    ZC_OK = 0,
    ZC_ENOMEM = -1,   /* memory refused */
    ZC_ENOSPC = -2,   /* disk full, quota */
    ZC_EIO = -3,      /* read, write or fsync failed */
    ZC_EINVAL = -4,   /* argument or configuration unusable */
    ZC_ENOENT = -5,   /* no such thing */
    ZC_EEXIST = -6,   /* already there */
    ZC_EBUSY = -7,    /* held by somebody else */
    ZC_EACCES = -8,   /* not permitted */
    ZC_EBADMSG = -9,  /* checksum or syntax wrong */
    ZC_ELIMIT = -10,  /* one of our limits */
    ZC_EAGAIN = -11,  /* not now */
    ZC_ECLOSED = -12, /* the other side is gone */
    ZC_ETIMEDOUT = -13,
    ZC_EMFILE = -14, /* out of file descriptors */
};

#define ZC_MUST_CHECK __attribute__((warn_unused_result))

/* Short English text of a code, never NULL. */
const char *zc_err_text(int err);

#endif
