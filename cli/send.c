/* put and pub. */
#include "payload.h"
#include "say.h"
#include "verbs.h"

#include <string.h>

static int put(const struct zc_args *args, struct zmqcat *bus, const struct zc_buf *payload)
{
    struct zmqcat_put_options options = zc_payload_options(args);
    const char *name = args->rest[0];
    int rc = zmqcat_put(bus, name, strlen(name), payload->data, payload->len, &options);
    return rc != ZMQCAT_OK ? zc_say_bus(args, bus, rc) : 0;
}

int zc_send_put(const struct zc_args *args)
{
    if (args->lines)
        return zc_lines_put(args);
    if (args->json)
        return zc_say_usage(args->verb, "--json reports on --lines only");
    return zc_payload_send(args, -1, put);
}

static int pub(const struct zc_args *args, struct zmqcat *bus, const struct zc_buf *payload)
{
    struct zmqcat_put_options options = zc_payload_options(args);
    const char *name = args->rest[0];
    int64_t subs = 0;
    int rc = zmqcat_pub(bus, name, strlen(name), payload->data, payload->len, &options, &subs);
    if (rc != ZMQCAT_OK)
        return zc_say_bus(args, bus, rc);
    return args->need_sub && subs == 0 ? zc_say_fail(4, args->verb, name, "no subscription matched")
                                       : 0;
}

int zc_send_pub(const struct zc_args *args)
{
    return zc_payload_send(args, -1, pub);
}
