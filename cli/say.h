/*
 * What the command says on standard error: `zmqcat: what: why`, with a hint where there is one. All
 * that came from outside is escaped, so that no name forges a line or moves a terminal's cursor.
 */
#ifndef ZC_CLI_SAY_H
#define ZC_CLI_SAY_H

#include <stddef.h>

#include "args.h"

/* Bytes for a terminal, always NUL-terminated, cut with "...". */
void zc_say_escape(char *ret_out, size_t cap, const char *text, size_t len);
/* `zmqcat: verb name: why`; name may be NULL and is escaped here. Returns status. */
int zc_say_fail(int status, const char *verb, const char *name, const char *why);
/* A wrong command line: says how to get help. Returns 2. */
__attribute__((format(printf, 2, 3))) int zc_say_usage(const char *verb, const char *format, ...);
/* `hint: text`. */
void zc_say_hint(const char *text);
/* A failed call of the client library (rc) on NAME, the first positional argument: says why and
 * what to do. Returns the exit status. */
int zc_say_bus(const struct zc_args *args, const struct zmqcat *bus, int rc);

#endif
