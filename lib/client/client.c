/*
 * A connection of the client library: opened, described, freed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/text.h"
#include "client/call.h"
#include "client/client.h"
#include "client/dial.h"
#include "client/kept.h"
#include "client/wire.h"

#define HOST_NAME_MAX_BYTES 256

/* A connection without a socket. */
static struct zmqcat *new_bus(zmqcat_poll_fn *poll, void *data)
{
    struct zmqcat *bus = calloc(1, sizeof *bus);
    if (bus == NULL)
        return NULL;
    bus->fd = -1;
    bus->poll = poll;
    bus->poll_data = data;
    zc_list_init(&bus->kept);
    uint8_t seed[8];
    if (getentropy(seed, sizeof seed) != 0) {
        free(bus);
        return NULL;
    }
    zc_text_hex(bus->id_prefix, zc_slice(seed, sizeof seed));
    return bus;
}

static int hello(struct zmqcat *bus, const char *name, const char *scope, enum zc_call_answer want,
                 int64_t timeout_ms)
{
    char host[HOST_NAME_MAX_BYTES] = "";
    if (name == NULL && gethostname(host, sizeof host - 1) == 0)
        name = host;
    zc_call_begin(bus, "hello", NULL, zc_slice(NULL, 0));
    if (name != NULL)
        bus->out.from = zc_slice_str(name);
    if (scope != NULL)
        bus->out.scope = zc_slice_str(scope);
    return zc_call_run(bus, want, timeout_ms);
}

ZMQCAT_PUBLIC int zmqcat_hello(struct zmqcat *bus, const char *name, const char *scope)
{
    return hello(bus, name, scope, ZC_CALL_OK, ZC_BUS_ANSWER_MS);
}

int zc_client_attach(int fd, const char *name, struct zmqcat **ret_bus)
{
    struct zmqcat *bus = *ret_bus = new_bus(NULL, NULL);
    if (bus == NULL)
        return ZMQCAT_FAILED;
    bus->fd = fd;
    int rc = zmqcat_hello(bus, name, NULL);
    if (rc != ZMQCAT_OK)
        zc_wire_close(bus);
    return rc;
}

ZMQCAT_PUBLIC int zmqcat_open(const char *address, const char *name, struct zmqcat **ret_bus)
{
    return zmqcat_open_within(address, name, -1, ret_bus);
}

ZMQCAT_PUBLIC int zmqcat_open_within(const char *address, const char *name, int64_t timeout_ms,
                                     struct zmqcat **ret_bus)
{
    return zmqcat_open_polled(address, name, timeout_ms, NULL, NULL, ret_bus);
}

ZMQCAT_PUBLIC int zmqcat_open_polled(const char *address, const char *name, int64_t timeout_ms,
                                     zmqcat_poll_fn *poll, void *data, struct zmqcat **ret_bus)
{
    struct zmqcat *bus = *ret_bus = new_bus(poll, data);
    if (bus == NULL)
        return ZMQCAT_FAILED;
    int rc = zc_dial_bus(bus, address);
    if (rc == ZMQCAT_OK)
        rc = hello(bus, name, NULL, ZC_CALL_HELLO, timeout_ms < 0 ? ZC_BUS_ANSWER_MS : timeout_ms);
    if (rc == ZMQCAT_TIMEOUT && timeout_ms < 0)
        rc = ZMQCAT_FAILED;
    if (rc != ZMQCAT_OK)
        zc_wire_close(bus);
    return rc;
}

ZMQCAT_PUBLIC int zmqcat_open_control(const char *control, const char *listen,
                                      struct zmqcat **ret_bus)
{
    return zmqcat_open_control_polled(control, listen, NULL, NULL, ret_bus);
}

ZMQCAT_PUBLIC int zmqcat_open_control_polled(const char *control, const char *listen,
                                             zmqcat_poll_fn *poll, void *data,
                                             struct zmqcat **ret_bus)
{
    struct zmqcat *bus = *ret_bus = new_bus(poll, data);
    return bus == NULL ? ZMQCAT_FAILED : zc_dial_control(bus, control, listen);
}

ZMQCAT_PUBLIC void zmqcat_free(struct zmqcat *bus)
{
    if (bus == NULL)
        return;
    zc_wire_close(bus);
    zc_kept_clear(bus);
    zc_buf_done(&bus->rx);
    free(bus->filter);
    free(bus);
}

ZMQCAT_PUBLIC int zmqcat_set_filter(struct zmqcat *bus, const char *filter)
{
    char *copy = filter != NULL ? strdup(filter) : NULL;
    if (filter != NULL && copy == NULL)
        return zc_call_fail(bus, ZMQCAT_FAILED, zc_err_text(ZC_ENOMEM));
    free(bus->filter);
    bus->filter = copy;
    return ZMQCAT_OK;
}

ZMQCAT_PUBLIC const char *zmqcat_error_text(const struct zmqcat *bus)
{
    return bus != NULL ? bus->why : "out of memory";
}

ZMQCAT_PUBLIC const char *zmqcat_error_code(const struct zmqcat *bus)
{
    return bus != NULL ? bus->code : "";
}

ZMQCAT_PUBLIC int zmqcat_fd(const struct zmqcat *bus)
{
    return bus->fd;
}

ZMQCAT_PUBLIC const char *zmqcat_address(const struct zmqcat *bus)
{
    return bus != NULL ? bus->address : "";
}

ZMQCAT_PUBLIC const char *zmqcat_warning(const struct zmqcat *bus)
{
    return bus != NULL ? bus->warning : "";
}

ZMQCAT_PUBLIC uint64_t zmqcat_dropped(const struct zmqcat *bus)
{
    return bus->dropped;
}

ZMQCAT_PUBLIC int zmqcat_poll(struct zmqcat *bus)
{
    return zc_call_poll(bus);
}
