/*
 * The calls of an operator: peek, purge, move, bind and unbind.
 */
#include "client/call.h"

static int set_max(struct zmqcat *bus, int max)
{
    if (max < 0 || max > ZC_MSG_MAX_MAX)
        return zc_call_fail(bus, ZMQCAT_USAGE, "max is not between 1 and 1,024");
    bus->out.max = max;
    bus->out.has |= max > 0 ? ZC_MSG_HAS_MAX : 0;
    return ZMQCAT_OK;
}

ZMQCAT_PUBLIC int zmqcat_peek(struct zmqcat *bus, const char *name, size_t name_len, int max,
                              struct zmqcat_msg *ret_msg)
{
    zc_call_begin(bus, "peek", NULL, zc_slice(name, name_len));
    int rc = set_max(bus, max);
    if (rc == ZMQCAT_OK)
        rc = zc_call_run(bus, ZC_CALL_PEEKED, ZC_BUS_ANSWER_MS);
    if (rc == ZMQCAT_OK)
        zc_call_message(bus, ret_msg);
    return rc;
}

ZMQCAT_PUBLIC int zmqcat_peek_next(struct zmqcat *bus, struct zmqcat_msg *ret_msg)
{
    bus->why[0] = bus->code[0] = '\0';
    int rc = zc_call_wait(bus, ZC_CALL_PEEKED, ZC_BUS_ANSWER_MS);
    if (rc == ZMQCAT_OK)
        zc_call_message(bus, ret_msg);
    if (rc == ZMQCAT_TIMEOUT && bus->code[0] == '\0')
        rc = zc_call_fail(bus, ZMQCAT_FAILED, "the hub did not answer in time");
    return rc;
}

/* Runs bus->out, which is answered by a count. No time limit of ours: it may be much work. */
static int counted(struct zmqcat *bus, int64_t *ret_count)
{
    int rc = zc_call_run(bus, ZC_CALL_OK, -1);
    if (rc == ZMQCAT_OK && ret_count != NULL)
        *ret_count = bus->msg.count;
    return rc;
}

ZMQCAT_PUBLIC int zmqcat_purge(struct zmqcat *bus, const char *name, size_t name_len,
                               int64_t *ret_count)
{
    zc_call_begin(bus, "purge", NULL, zc_slice(name, name_len));
    return counted(bus, ret_count);
}

ZMQCAT_PUBLIC int zmqcat_move(struct zmqcat *bus, const char *from, size_t from_len, const char *to,
                              size_t to_len, int max, int64_t *ret_count)
{
    zc_call_begin(bus, "move", NULL, zc_slice(from, from_len));
    bus->out.to = zc_slice(to, to_len);
    int rc = set_max(bus, max);
    return rc != ZMQCAT_OK ? rc : counted(bus, ret_count);
}

static int binding(struct zmqcat *bus, const char *op, struct zc_slice name, struct zc_slice topic)
{
    zc_call_begin(bus, op, NULL, name);
    bus->out.topic = topic;
    return zc_call_run(bus, ZC_CALL_OK, ZC_BUS_ANSWER_MS);
}

ZMQCAT_PUBLIC int zmqcat_bind(struct zmqcat *bus, const char *name, size_t name_len,
                              const char *prefix, size_t prefix_len)
{
    return binding(bus, "bind", zc_slice(name, name_len), zc_slice(prefix, prefix_len));
}

ZMQCAT_PUBLIC int zmqcat_unbind(struct zmqcat *bus, const char *name, size_t name_len,
                                const char *prefix, size_t prefix_len)
{
    return binding(bus, "unbind", zc_slice(name, name_len), zc_slice(prefix, prefix_len));
}
