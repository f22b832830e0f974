/* revoke, reload and drain: what an administrator tells a daemon by its control socket. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "crypto/secret.h"
#include "open.h"
#include "say.h"
#include "verbs.h"

/* It was done, but: the member `warning` of the answer. */
static void say_warning(const struct zc_args *args, const char *json, size_t len)
{
    char shown[600];
    struct zc_buf copy = {0};
    struct zc_json j;
    struct zc_slice key;
    struct zc_json_value v;
    bool first = true, bad = false;
    if (zc_buf_append(&copy, json, len) != 0)
        return;
    zc_json_init(&j, copy.data, copy.len);
    if (zc_json_eat(&j, '{'))
        while (zc_json_member(&j, &first, 1, &key, &bad, &v))
            if (zc_slice_is(key, "warning") && v.type == ZC_JSON_STRING) {
                zc_say_escape(shown, sizeof shown, (const char *)v.text.data, v.text.len);
                fprintf(stderr, "zmqcat: %s: warning: %s\n", args->verb, shown);
            }
    zc_buf_done(&copy);
}

/* The verb with its argument; unknown: what it means when the daemon does not know it. */
static int tell(const struct zc_args *args, const char *unknown)
{
    const char *json, *name = args->rest_count > 0 ? args->rest[0] : NULL;
    size_t len;
    struct zmqcat *bus = NULL;
    int status = zc_open_control(args, &bus);
    if (status != 0)
        return status;
    int rc =
        zmqcat_query(bus, args->verb, name, name != NULL ? strlen(name) : 0, NULL, &json, &len);
    if (rc == ZMQCAT_OK)
        say_warning(args, json, len);
    else if (rc == ZMQCAT_REFUSED)
        status = zc_say_fail(4, args->verb, NULL, zmqcat_error_text(bus));
    else if (unknown != NULL && strcmp(zmqcat_error_code(bus), "unknown_op") == 0)
        status = zc_say_fail(1, args->verb, NULL, unknown);
    else
        status = zc_say_bus(args, bus, rc);
    zmqcat_free(bus);
    return status;
}

int zc_admin_revoke(const struct zc_args *args)
{
    uint8_t key[ZC_SECRET_BYTES];
    char shown[200];
    struct zc_slice text = zc_slice(args->rest[0], strlen(args->rest[0]));
    zc_say_escape(shown, sizeof shown, args->rest[0], text.len);
    if (zc_secret_parse(ZC_SECRET_NODE_KEY, text, key) != 0)
        return zc_say_usage(args->verb,
                            "%s: want nodekey: and 64 hex digits, as `zmqcat nodekey` prints it",
                            shown);
    return tell(args, "no spokes come in here: this is a spoke, or a hub that serves its own host "
                      "only (--local): say it to the hub that they join");
}

int zc_admin_reload(const struct zc_args *args)
{
    return tell(args, NULL);
}

int zc_admin_drain(const struct zc_args *args)
{
    return tell(args, NULL);
}
