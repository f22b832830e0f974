/*
 * Why something failed, in words that stand behind a path: what is wrong, the system's reason, what
 * to do now.
 */
#ifndef ZC_HOST_WHY_H
#define ZC_HOST_WHY_H

#define ZC_WHY_MAX 512

/* Returns err. */
__attribute__((format(printf, 3, 4))) int zc_why_set(char ret_why[ZC_WHY_MAX], int err,
                                                     const char *format, ...);
/* With the reason that errno has; returns its zc_err. */
int zc_why_errno(char ret_why[ZC_WHY_MAX], const char *what);

#endif
