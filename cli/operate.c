/* peek, purge, mv, bind and unbind: an operator's work on mailboxes. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "open.h"
#include "out.h"
#include "print.h"
#include "say.h"
#include "verbs.h"

#define MAX_MAX 1024 /* messages of one peek or move */

/* Prints what a peek gives, up to its end. */
static int show_all(const struct zc_args *args, struct zmqcat *bus, int max, struct zc_out *out)
{
    struct zmqcat_msg m;
    int status = 0, rc = zmqcat_peek(bus, args->rest[0], strlen(args->rest[0]), max, &m);
    while (rc == ZMQCAT_OK && status == 0) {
        zc_print_message(out, args, &m);
        status = zc_out_flush(out);
        if (max == 0 || m.end)
            return status;
        rc = zmqcat_peek_next(bus, &m);
    }
    return status != 0 ? status : zc_say_bus(args, bus, rc);
}

int zc_operate_peek(const struct zc_args *args)
{
    struct zmqcat *bus = NULL;
    struct zc_out out;
    if (args->count > MAX_MAX)
        return zc_say_usage(args->verb, "--count: at most %d", MAX_MAX);
    int status = zc_out_usable();
    if (status == 0)
        status = zc_open_bus(args, &bus);
    if (status != 0)
        return status;
    zc_out_init(&out, NULL); /* between two messages of a peek nothing else may be read */
    status = show_all(args, bus, args->count > 1 ? (int)args->count : 0, &out);
    zc_out_done(&out);
    zmqcat_free(bus);
    return status;
}

static int print_count(const struct zc_args *args, int64_t count)
{
    struct zc_out out;
    char text[64];
    snprintf(text, sizeof text, args->json ? "{\"count\":%" PRId64 "}\n" : "%" PRId64 "\n", count);
    zc_out_init(&out, NULL);
    zc_out_str(&out, text);
    int status = zc_out_flush(&out);
    zc_out_done(&out);
    return status;
}

int zc_operate_purge(const struct zc_args *args)
{
    struct zmqcat *bus = NULL;
    int64_t count = 0;
    int status = zc_out_usable();
    if (status == 0)
        status = zc_open_bus(args, &bus);
    if (status != 0)
        return status;
    int rc = zmqcat_purge(bus, args->rest[0], strlen(args->rest[0]), &count);
    status = rc != ZMQCAT_OK ? zc_say_bus(args, bus, rc) : print_count(args, count);
    zmqcat_free(bus);
    return status;
}

/* Moves all, or --count. *ret_count is how many were, also after a failure. */
static int move(const struct zc_args *args, struct zmqcat *bus, int64_t *ret_count)
{
    const char *from = args->rest[0], *to = args->rest[1];
    uint64_t moved = 0, want = args->count;
    int64_t count = 1;
    int rc = ZMQCAT_OK;
    while (rc == ZMQCAT_OK && count > 0 && (want == 0 || moved < want)) {
        uint64_t left = want - moved;
        int max = want == 0 || left > MAX_MAX ? MAX_MAX : (int)left;
        count = 0;
        rc = zmqcat_move(bus, from, strlen(from), to, strlen(to), max, &count);
        moved += rc == ZMQCAT_OK ? (uint64_t)count : 0;
    }
    *ret_count = (int64_t)moved;
    return rc;
}

int zc_operate_mv(const struct zc_args *args)
{
    struct zmqcat *bus = NULL;
    struct zmqcat_msg m;
    int64_t count = 0;
    if (args->rest_count < 2)
        return zc_say_usage(args->verb, "missing mailbox to move to");
    if (strcmp(args->rest[0], args->rest[1]) == 0)
        return zc_say_usage(args->verb, "both mailboxes are the same");
    int status = zc_out_usable();
    if (status == 0)
        status = zc_open_bus(args, &bus);
    if (status != 0)
        return status;
    int rc = move(args, bus, &count);
    if (rc != ZMQCAT_OK)
        status = zc_say_bus(args, bus, rc);
    if (rc == ZMQCAT_OK || count > 0) {
        int printed = print_count(args, count);
        status = status != 0 ? status : printed;
    }
    bool all = args->count > 0 && (uint64_t)count == args->count;
    if (status == 0 && !all && zmqcat_peek(bus, args->rest[0], strlen(args->rest[0]), 0, &m) == 0) {
        status = zc_say_fail(4, args->verb, args->rest[1], "is full: not all was moved");
        zc_say_hint("what was not moved is where it was");
    }
    zmqcat_free(bus);
    return status;
}

static int binding(const struct zc_args *args,
                   int (*call)(struct zmqcat *, const char *, size_t, const char *, size_t))
{
    struct zmqcat *bus = NULL;
    if (args->rest_count < 2)
        return zc_say_usage(args->verb, "missing beginning of topics");
    const char *name = args->rest[0], *prefix = args->rest[1];
    int status = zc_open_bus(args, &bus);
    if (status != 0)
        return status;
    int rc = call(bus, name, strlen(name), prefix, strlen(prefix));
    status = rc != ZMQCAT_OK ? zc_say_bus(args, bus, rc) : 0;
    zmqcat_free(bus);
    return status;
}

int zc_operate_bind(const struct zc_args *args)
{
    return binding(args, zmqcat_bind);
}

int zc_operate_unbind(const struct zc_args *args)
{
    return binding(args, zmqcat_unbind);
}
