/* put and pub. */
#include "open.h"
#include "payload.h"
#include "say.h"
#include "verbs.h"

#include <string.h>

int zc_send_put(const struct zc_args *args)
{
    if (args->lines)
        return zc_lines_put(args);
    if (args->json)
        return zc_say_usage(args->verb, "--json reports on --lines only");
    struct zc_buf payload;
    int status = zc_payload_read(args, &payload);
    if (status != 0)
        return status;
    struct zmqcat *bus = NULL;
    status = zc_open_bus(args, &bus);
    if (status == 0) {
        struct zmqcat_put_options options = zc_payload_options(args);
        int rc = zmqcat_put(bus, args->rest[0], strlen(args->rest[0]), payload.data, payload.len,
                            &options);
        if (rc != ZMQCAT_OK)
            status = zc_say_bus(args, bus, rc);
    }
    zmqcat_free(bus);
    zc_buf_done(&payload);
    return status;
}

int zc_send_pub(const struct zc_args *args)
{
    struct zc_buf payload;
    int status = zc_payload_read(args, &payload);
    if (status != 0)
        return status;
    struct zmqcat *bus = NULL;
    status = zc_open_bus(args, &bus);
    if (status == 0) {
        struct zmqcat_put_options options = zc_payload_options(args);
        int64_t subs = 0;
        int rc = zmqcat_pub(bus, args->rest[0], strlen(args->rest[0]), payload.data, payload.len,
                            &options, &subs);
        if (rc != ZMQCAT_OK)
            status = zc_say_bus(args, bus, rc);
        else if (args->need_sub && subs == 0)
            status = zc_say_fail(4, args->verb, args->rest[0], "no subscription matched");
    }
    zmqcat_free(bus);
    zc_buf_done(&payload);
    return status;
}
