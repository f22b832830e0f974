/*
 * The calls on mailboxes: put, take, reserve, ready and what is done with a delivery.
 */
#include "client/call.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What put and pub share. */
static int apply(struct zmqcat *bus, const struct zmqcat_put_options *options)
{
    if (options == NULL)
        return ZMQCAT_OK;
    if (options->headers_count > ZC_MSG_HEADERS_CAP)
        return zc_call_fail(bus, ZMQCAT_USAGE, "too many headers: at most 256");
    for (size_t i = 0; i < options->headers_count; i++) {
        const struct zmqcat_header *h = &options->headers[i];
        bus->out.headers[i] =
            (struct zc_header){zc_slice(h->key, h->key_len), zc_slice(h->value, h->value_len)};
    }
    bus->out.headers_count = (uint32_t)options->headers_count;
    if (options->delay_ms > 0) {
        bus->out.delay_ms = options->delay_ms;
        bus->out.has |= ZC_MSG_HAS_DELAY;
    }
    if (options->ttl_ms > 0) {
        bus->out.ttl_ms = options->ttl_ms;
        bus->out.has |= ZC_MSG_HAS_TTL;
    }
    if (options->if_consumer)
        bus->out.condition = zc_slice_str("consumer");
    return ZMQCAT_OK;
}

ZMQCAT_PUBLIC int zmqcat_put(struct zmqcat *bus, const char *name, size_t name_len,
                             const void *payload, size_t len,
                             const struct zmqcat_put_options *options)
{
    zc_call_begin(bus, "put", options != NULL ? options->id : NULL, zc_slice(name, name_len));
    zc_call_payload(bus, payload, len);
    int rc = apply(bus, options);
    return rc != ZMQCAT_OK ? rc : zc_call_run(bus, ZC_CALL_OK, ZC_BUS_ANSWER_MS);
}

/* The id of the put with this number. */
static const char *put_id(struct zmqcat *bus, uint64_t number)
{
    snprintf(bus->id, sizeof bus->id, "%s-p%" PRIu64, bus->id_prefix, number);
    return bus->id;
}

ZMQCAT_PUBLIC int zmqcat_put_start(struct zmqcat *bus, const char *name, size_t name_len,
                                   const void *payload, size_t len,
                                   const struct zmqcat_put_options *options)
{
    zc_call_begin(bus, "put", NULL, zc_slice(name, name_len));
    if (options != NULL && options->id != NULL)
        return zc_call_fail(bus, ZMQCAT_USAGE, "a put that is only started has no id of its own");
    bus->out.id = zc_slice_str(put_id(bus, bus->put_next));
    zc_call_payload(bus, payload, len);
    int rc = apply(bus, options);
    if (rc == ZMQCAT_OK)
        rc = zc_call_send(bus);
    if (rc == ZMQCAT_OK)
        bus->put_next++;
    return rc;
}

ZMQCAT_PUBLIC int zmqcat_put_finish(struct zmqcat *bus, int64_t wait_ms)
{
    bus->why[0] = bus->code[0] = '\0';
    if (bus->put_first == bus->put_next)
        return zc_call_fail(bus, ZMQCAT_USAGE, "no put was started");
    const char *id = put_id(bus, bus->put_first);
    bus->want_len = strlen(id);
    memcpy(bus->want, id, bus->want_len);
    int rc = zc_call_wait(bus, ZC_CALL_OK, wait_ms);
    bool answered = rc == ZMQCAT_OK || rc == ZMQCAT_ERR || rc == ZMQCAT_REFUSED;
    if (answered || bus->code[0] != '\0')
        bus->put_first++;
    return rc;
}

ZMQCAT_PUBLIC int zmqcat_pub(struct zmqcat *bus, const char *topic, size_t topic_len,
                             const void *payload, size_t len,
                             const struct zmqcat_put_options *options, int64_t *ret_subs)
{
    zc_call_begin(bus, "pub", options != NULL ? options->id : NULL, zc_slice(topic, topic_len));
    zc_call_payload(bus, payload, len);
    int rc = apply(bus, options);
    if (rc == ZMQCAT_OK)
        rc = zc_call_run(bus, ZC_CALL_OK, ZC_BUS_ANSWER_MS);
    if (rc == ZMQCAT_OK && ret_subs != NULL)
        *ret_subs = bus->msg.subs;
    return rc;
}

/* Sends a request that waits for a message in the hub. */
static int receive(struct zmqcat *bus, enum zc_call_answer want, int64_t wait_ms,
                   struct zmqcat_msg *ret_msg)
{
    int64_t guard_ms = -1;
    if (wait_ms > ZC_MSG_SECONDS_MAX * 1000)
        return zc_call_fail(bus, ZMQCAT_USAGE, "the wait is too long: at most ten years");
    if (wait_ms >= 0) {
        bus->out.wait_ms = wait_ms;
        bus->out.has |= ZC_MSG_HAS_WAIT;
        guard_ms = wait_ms + ZC_BUS_GUARD_MS;
    }
    int rc = zc_call_run(bus, want, guard_ms);
    if (rc == ZMQCAT_OK)
        zc_call_message(bus, ret_msg);
    return rc;
}

ZMQCAT_PUBLIC int zmqcat_take(struct zmqcat *bus, const char *name, size_t name_len,
                              int64_t wait_ms, struct zmqcat_msg *ret_msg)
{
    zc_call_begin(bus, "take", NULL, zc_slice(name, name_len));
    if (bus->subscribed)
        return zc_call_fail(bus, ZMQCAT_USAGE,
                            "take on a connection with a subscription: use a "
                            "second connection");
    return receive(bus, ZC_CALL_TAKEN, wait_ms, ret_msg);
}

ZMQCAT_PUBLIC int zmqcat_reserve(struct zmqcat *bus, const char *name, size_t name_len,
                                 int64_t lease_s, int64_t wait_ms, struct zmqcat_msg *ret_msg)
{
    zc_call_begin(bus, "reserve", NULL, zc_slice(name, name_len));
    if (bus->filter != NULL)
        bus->out.filter = zc_slice_str(bus->filter);
    if (lease_s > 0) {
        bus->out.lease = lease_s;
        bus->out.has |= ZC_MSG_HAS_LEASE;
    }
    return receive(bus, ZC_CALL_RESERVED, wait_ms, ret_msg);
}

ZMQCAT_PUBLIC int zmqcat_ready(struct zmqcat *bus, const char *name, size_t name_len,
                               int64_t wait_ms, struct zmqcat_msg *ret_msg)
{
    zc_call_begin(bus, "ready", NULL, zc_slice(name, name_len));
    if (bus->filter != NULL)
        bus->out.filter = zc_slice_str(bus->filter);
    return receive(bus, ZC_CALL_READY, wait_ms, ret_msg);
}

ZMQCAT_PUBLIC int zmqcat_ask(struct zmqcat *bus, const char *op, const char *name, size_t name_len,
                             int64_t lease_s, int64_t wait_ms)
{
    zc_call_begin(bus, op, NULL, zc_slice(name, name_len));
    if (strcmp(op, "take") != 0 && strcmp(op, "reserve") != 0 && strcmp(op, "ready") != 0)
        return zc_call_fail(bus, ZMQCAT_USAGE, "only take, reserve and ready can be asked for");
    if (bus->subscribed)
        return zc_call_fail(bus, ZMQCAT_USAGE,
                            "the connection has a subscription: use a second connection");
    snprintf(bus->id, sizeof bus->id, "%s" ZC_CALL_ASK_MARK "%" PRIu64, bus->id_prefix,
             bus->id_last);
    bus->out.id = zc_slice_str(bus->id);
    if (bus->filter != NULL && strcmp(op, "take") != 0)
        bus->out.filter = zc_slice_str(bus->filter);
    if (lease_s > 0) {
        bus->out.lease = lease_s;
        bus->out.has |= ZC_MSG_HAS_LEASE;
    }
    if (wait_ms > ZC_MSG_SECONDS_MAX * 1000)
        return zc_call_fail(bus, ZMQCAT_USAGE, "the wait is too long: at most ten years");
    if (wait_ms >= 0) {
        bus->out.wait_ms = wait_ms;
        bus->out.has |= ZC_MSG_HAS_WAIT;
    }
    int rc = zc_call_send(bus);
    if (rc == ZMQCAT_OK)
        bus->asked++;
    return rc;
}

ZMQCAT_PUBLIC int zmqcat_ack(struct zmqcat *bus, const char *delivery, size_t len)
{
    zc_call_begin(bus, "ack", NULL, zc_slice(NULL, 0));
    bus->out.delivery = zc_slice(delivery, len);
    return zc_call_run(bus, ZC_CALL_OK, ZC_BUS_ANSWER_MS);
}

ZMQCAT_PUBLIC int zmqcat_nack(struct zmqcat *bus, const char *delivery, size_t len,
                              int64_t delay_ms)
{
    zc_call_begin(bus, "nack", NULL, zc_slice(NULL, 0));
    bus->out.delivery = zc_slice(delivery, len);
    if (delay_ms > 0) {
        bus->out.delay_ms = delay_ms;
        bus->out.has |= ZC_MSG_HAS_DELAY;
    }
    return zc_call_run(bus, ZC_CALL_OK, ZC_BUS_ANSWER_MS);
}

ZMQCAT_PUBLIC int zmqcat_touch(struct zmqcat *bus, const char *delivery, size_t len,
                               int64_t lease_s, int64_t *ret_lease)
{
    zc_call_begin(bus, "touch", NULL, zc_slice(NULL, 0));
    bus->out.delivery = zc_slice(delivery, len);
    if (lease_s > 0) {
        bus->out.lease = lease_s;
        bus->out.has |= ZC_MSG_HAS_LEASE;
    }
    int rc = zc_call_run(bus, ZC_CALL_OK, ZC_BUS_ANSWER_MS);
    if (rc == ZMQCAT_OK && ret_lease != NULL)
        *ret_lease = bus->msg.lease;
    return rc;
}
