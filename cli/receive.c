/* take and ready. */
#include "open.h"
#include "out.h"
#include "print.h"
#include "say.h"
#include "settle.h"
#include "verbs.h"

#include <string.h>

static int take_one(const struct zc_args *args, struct zmqcat *bus, struct zc_out *out)
{
    /* What is taken now and cannot be written would be lost. */
    if (zc_out_gone(out))
        return 1;
    struct zmqcat_msg m;
    int rc = zmqcat_take(bus, args->rest[0], strlen(args->rest[0]), args->wait_ms, &m);
    if (rc != ZMQCAT_OK)
        return zc_say_bus(args, bus, rc);
    zc_print_message(out, args, &m);
    return zc_out_flush(out);
}

int zc_receive_take(const struct zc_args *args)
{
    struct zmqcat *bus = NULL;
    int status = zc_out_usable();
    if (status == 0 && args->follow)
        return zc_follow_take(args);
    if (status == 0)
        status = zc_open_bus(args, &bus);
    if (status != 0)
        return status;
    struct zc_out out;
    zc_out_init(&out, bus);
    uint64_t count = args->count > 0 ? args->count : 1;
    for (uint64_t i = 0; i < count && status == 0; i++)
        status = take_one(args, bus, &out);
    zc_out_done(&out);
    zmqcat_free(bus);
    return status;
}

int zc_receive_ready(const struct zc_args *args)
{
    struct zmqcat *bus = NULL;
    int status = zc_out_usable();
    if (status == 0)
        status = zc_open_bus(args, &bus);
    if (status != 0)
        return status;
    struct zc_out out;
    zc_out_init(&out, bus);
    struct zmqcat_msg m;
    int rc = zmqcat_ready(bus, args->rest[0], strlen(args->rest[0]), args->wait_ms, &m);
    if (rc != ZMQCAT_OK) {
        status = zc_say_bus(args, bus, rc);
    } else {
        zc_print_message(&out, args, &m);
        char delivery[1024];
        size_t len = m.delivery_len < sizeof delivery ? m.delivery_len : sizeof delivery;
        memcpy(delivery, m.delivery, len);
        status = zc_out_flush(&out);
        int settled = zc_settle(args, bus, delivery, len, args->ack && status == 0);
        status = status != 0 ? status : settled;
    }
    zc_out_done(&out);
    zmqcat_free(bus);
    return status;
}
