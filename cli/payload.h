/* The payload of put, pub and req: arguments, a file, or standard input. */
#ifndef ZC_CLI_PAYLOAD_H
#define ZC_CLI_PAYLOAD_H

#include "args.h"
#include "base/buf.h"

/* Positional arguments after the name, joined by one space; else --file; else standard input to its
 * end, where a terminal or another character device (/dev/null) counts as empty. Returns 0 or the
 * exit status after saying why. */
int zc_payload_read(const struct zc_args *args, struct zc_buf *ret_payload);

/* The options of put and pub. */
struct zmqcat_put_options zc_payload_options(const struct zc_args *args);

/* Reads the payload, opens the bus (limit_ms as zc_open_within) and calls send; the exit status. */
int zc_payload_send(const struct zc_args *args, int64_t limit_ms,
                    int (*send)(const struct zc_args *args, struct zmqcat *bus,
                                const struct zc_buf *payload));

/* Standard input cannot be read from: it was closed when we were started. */
bool zc_payload_stdin_closed(void);

#endif
