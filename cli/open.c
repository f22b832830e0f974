/* Opens the bus or the control socket that the command line or the environment names. */
#include "open.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "say.h"

#define CONFIG_STATUS 78
#define ANSWER_MS 2000 /* a hub far away may take so long for its first answer */
#define AGAIN_MS 5000  /* whoever opens again can try once more */

/* Whether text is an address at all. *ret_address may be NULL. */
static int check(const struct zc_args *args, const char *source, const char *text,
                 struct zc_address *ret_address)
{
    char why[ZC_ADDRESS_WHY_MAX], shown[300], line[600];
    if (zc_address_parse(text, ret_address, why) == 0)
        return 0;
    zc_say_escape(shown, sizeof shown, text, strlen(text));
    snprintf(line, sizeof line, "%s %s: %s", source, shown, why);
    return zc_say_fail(CONFIG_STATUS, args->verb, NULL, line);
}

/* The bus that was named, or NULL. *ret_source is how. */
static const char *named(const struct zc_args *args, const char **ret_source)
{
    const char *env = getenv("ZMQCAT_LISTEN");
    bool given = args->listen != NULL;
    *ret_source = given ? "--listen" : "ZMQCAT_LISTEN";
    return given ? args->listen : env != NULL && env[0] != '\0' ? env : NULL;
}

/* Says how an open went; on failure the connection is freed. */
static int opened(const struct zc_args *args, int rc, struct zmqcat *bus, struct zmqcat **ret_bus)
{
    if (zmqcat_warning(bus)[0] != '\0')
        fprintf(stderr, "zmqcat: %s: warning: %s\n", args->verb, zmqcat_warning(bus));
    if (rc == ZMQCAT_OK) {
        *ret_bus = bus;
        return 0;
    }
    int status = zc_say_bus(args, bus, rc);
    zmqcat_free(bus);
    return status;
}

/* How a bus is opened. */
struct how {
    int64_t limit_ms; /* negative: the library's */
    zmqcat_poll_fn *poll;
    void *data;
};

static int dial(const struct zc_args *args, const struct how *how, struct zmqcat **ret_bus)
{
    const char *source, *text = named(args, &source);
    int rc = zmqcat_open_polled(text, args->name, how->limit_ms, how->poll, how->data, ret_bus);
    if (rc == ZMQCAT_OK && args->filter != NULL)
        rc = zmqcat_set_filter(*ret_bus, args->filter);
    return rc;
}

static int open_bus(const struct zc_args *args, const struct how *how, struct zmqcat **ret_bus)
{
    const char *source, *text = named(args, &source);
    struct zc_address a;
    int status = text != NULL ? check(args, source, text, &a) : 0;
    if (status != 0)
        return status;
    struct zmqcat *bus;
    int rc = dial(args, how, &bus);
    return opened(args, rc, bus, ret_bus);
}

int zc_open_within(const struct zc_args *args, int64_t limit_ms, struct zmqcat **ret_bus)
{
    return open_bus(args, &(struct how){limit_ms, NULL, NULL}, ret_bus);
}

int zc_open_polled(const struct zc_args *args, zmqcat_poll_fn *poll, void *data,
                   struct zmqcat **ret_bus)
{
    int64_t wait_ms = args->wait_ms;
    int64_t limit_ms = wait_ms >= 0 && wait_ms < ANSWER_MS ? ANSWER_MS : wait_ms;
    return open_bus(args, &(struct how){limit_ms, poll, data}, ret_bus);
}

int zc_open_bus(const struct zc_args *args, struct zmqcat **ret_bus)
{
    return zc_open_polled(args, NULL, NULL, ret_bus);
}

int zc_open_again(const struct zc_args *args, zmqcat_poll_fn *poll, void *data,
                  struct zmqcat **ret_bus)
{
    return dial(args, &(struct how){AGAIN_MS, poll, data}, ret_bus);
}

int zc_open_control_again(const struct zc_args *args, zmqcat_poll_fn *poll, void *data,
                          struct zmqcat **ret_bus)
{
    const char *source;
    bool given = args->control != NULL && args->control[0] != '\0';
    return zmqcat_open_control_polled(given ? args->control : NULL,
                                      given ? NULL : named(args, &source), poll, data, ret_bus);
}

int zc_open_control_polled(const struct zc_args *args, zmqcat_poll_fn *poll, void *data,
                           struct zmqcat **ret_bus)
{
    const char *source = "--control", *text = args->control;
    bool given = text != NULL && text[0] != '\0';
    if (!given)
        text = named(args, &source);
    struct zc_address a;
    int status = text != NULL ? check(args, source, text, &a) : 0;
    if (status != 0)
        return status;
    struct zmqcat *bus;
    int rc = zc_open_control_again(args, poll, data, &bus);
    return opened(args, rc, bus, ret_bus);
}

int zc_open_control(const struct zc_args *args, struct zmqcat **ret_bus)
{
    return zc_open_control_polled(args, NULL, NULL, ret_bus);
}
