/* req and ping. */
#include "clock.h"
#include "open.h"
#include "out.h"
#include "payload.h"
#include "print.h"
#include "say.h"
#include "verbs.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/json.h"
#include "base/text.h"

#define RETRIES_DEFAULT 3
#define PING_MS 10000
#define PATH_MS 2000
#define PATH_LEN 32

static int abandoned(const struct zmqcat *bus, uint64_t attempts)
{
    fprintf(stderr, "zmqcat: request abandoned after %" PRIu64 " attempt%s: %s\n", attempts,
            attempts == 1 ? "" : "s", zmqcat_error_text(bus));
    zc_say_hint("is a worker on that name? `zmqcat stat NAME` shows what waits; --timeout and "
                "--retries allow more time");
    return 3;
}

static uint64_t attempts_of(const struct zc_args *args)
{
    return args->retries > 0 ? args->retries : RETRIES_DEFAULT;
}

/* All attempts together may take so long, and so the answer to the first word. */
static int64_t limit_of(const struct zc_args *args)
{
    int64_t ms;
    bool huge = attempts_of(args) > INT32_MAX ||
                __builtin_mul_overflow(args->timeout_ms, (int64_t)attempts_of(args), &ms);
    return huge ? INT64_MAX : ms;
}

/* All attempts carry one id, so that the hub does not queue the request twice. */
static int ask(const struct zc_args *args, struct zmqcat *bus, const struct zc_buf *payload)
{
    uint8_t seed[12];
    char id[2 * sizeof seed + 1] = "";
    if (getentropy(seed, sizeof seed) != 0)
        return zc_say_fail(1, args->verb, NULL, "the system gives no random bytes");
    zc_text_hex(id, zc_slice(seed, sizeof seed));
    uint64_t attempts = attempts_of(args);
    struct zmqcat_msg m;
    int rc = ZMQCAT_TIMEOUT;
    for (uint64_t i = 0; i < attempts && rc == ZMQCAT_TIMEOUT; i++)
        rc = zmqcat_req(bus, id, args->rest[0], strlen(args->rest[0]), payload->data, payload->len,
                        args->timeout_ms, &m);
    if (rc == ZMQCAT_TIMEOUT)
        return abandoned(bus, attempts);
    if (rc != ZMQCAT_OK)
        return zc_say_bus(args, bus, rc);
    struct zc_out out;
    zc_out_init(&out, bus);
    zc_print_message(&out, args, &m);
    int status = zc_out_flush(&out);
    zc_out_done(&out);
    return status;
}

int zc_ask_req(const struct zc_args *args)
{
    int status = zc_out_usable();
    return status != 0 ? status : zc_payload_send(args, limit_of(args), ask);
}

/* The object or array under this name, in j; false: there is none. */
static bool descend(struct zc_json *j, const char *name)
{
    struct zc_slice key;
    struct zc_json_value v;
    bool first = true, bad = false;
    if (!zc_json_eat(j, '{'))
        return false;
    while (zc_json_member(j, &first, 1, &key, &bad, &v)) {
        if (!zc_slice_is(key, name))
            continue;
        bool nested = v.type == ZC_JSON_OBJECT || v.type == ZC_JSON_ARRAY;
        if (nested) /* it lies in our copy */
            zc_json_init(j, (uint8_t *)(uintptr_t)v.text.data, v.text.len);
        return nested;
    }
    return false;
}

/* A spoke has one peer, the hub: the way to it is the path. A hub itself is right here. */
static void find_path(uint8_t *json, size_t len, char path[PATH_LEN])
{
    struct zc_slice key;
    struct zc_json_value v;
    struct zc_json j;
    bool first = true, bad = false, spoke = false;
    snprintf(path, PATH_LEN, "local");
    zc_json_init(&j, json, len);
    if (!descend(&j, "tunnel") || !zc_json_eat(&j, '{'))
        return;
    while (zc_json_member(&j, &first, 2, &key, &bad, &v)) {
        spoke = spoke || zc_slice_is(key, "connections");
        if (!spoke || !zc_slice_is(key, "peers") || v.type != ZC_JSON_ARRAY)
            continue;
        snprintf(path, PATH_LEN, "none");
        zc_json_init(&j, (uint8_t *)(uintptr_t)v.text.data, v.text.len);
        if (!zc_json_eat(&j, '[') || !zc_json_eat(&j, '{'))
            return;
        for (first = true; zc_json_member(&j, &first, 3, &key, &bad, &v);)
            if (zc_slice_is(key, "path") && v.type == ZC_JSON_STRING)
                snprintf(path, PATH_LEN, "%.*s", (int)v.text.len, (char *)v.text.data);
        return;
    }
}

/* A zmqcat_poll_fn with a deadline. */
static int poll_until(void *data, struct pollfd *hub, int timeout_ms)
{
    const int64_t *end_ms = data;
    int64_t left = *end_ms - zc_clock_ms();
    if (left <= 0) {
        errno = ECANCELED;
        return -1;
    }
    return poll(hub, 1, timeout_ms < 0 || timeout_ms > left ? (int)left : timeout_ms);
}

/* Asks the control socket for the path; it is empty where it cannot be had. */
static void ask_path(const struct zc_args *args, char path[PATH_LEN])
{
    struct zmqcat *control = NULL;
    struct zc_buf copy = {0};
    const char *json;
    size_t len;
    int64_t end_ms = zc_clock_ms() + PATH_MS;
    path[0] = '\0';
    if (zmqcat_open_control_polled(NULL, args->listen, poll_until, &end_ms, &control) ==
            ZMQCAT_OK &&
        zmqcat_query(control, "status", NULL, 0, NULL, &json, &len) == ZMQCAT_OK &&
        zc_buf_append(&copy, json, len) == 0)
        find_path(copy.data, copy.len, path);
    zc_buf_done(&copy);
    zmqcat_free(control);
}

/* What ping found, as text; rtt is empty when there was no answer. */
static void say_text(const struct zc_args *args, struct zc_out *out, const char *rtt)
{
    char path[PATH_LEN], text[64 + PATH_LEN];
    if (rtt[0] != '\0')
        zc_out_str(out, "pong\n");
    if (!args->verbose)
        return;
    if (rtt[0] != '\0') {
        snprintf(text, sizeof text, "round trip %s ms\n", rtt);
        zc_out_str(out, text);
    }
    ask_path(args, path);
    snprintf(text, sizeof text, "path %s\n", path);
    zc_out_str(out, path[0] != '\0' ? text : "");
}

static void say_json(const struct zc_args *args, struct zc_out *out, const char *rtt)
{
    char path[PATH_LEN];
    struct zc_buf b = {0};
    ask_path(args, path);
    int err = zc_json_put_raw(&b, "{\"rtt_ms\":");
    err = err != 0 ? err : zc_json_put_raw(&b, rtt[0] != '\0' ? rtt : "null");
    err = err != 0 ? err : zc_json_put_raw(&b, ",\"path\":");
    if (err == 0)
        err = path[0] != '\0' ? zc_json_put_string(&b, zc_slice(path, strlen(path)))
                              : zc_json_put_raw(&b, "null");
    err = err != 0 ? err : zc_json_put_raw(&b, "}\n");
    if (err != 0)
        out->short_of_memory = true;
    else
        zc_print_json_text(out, (const char *)b.data, b.len);
    zc_buf_done(&b);
}

int zc_ask_ping(const struct zc_args *args)
{
    struct zmqcat *bus = NULL;
    struct zc_out out;
    char rtt[48] = "";
    int status = zc_open_within(args, PING_MS, &bus);
    if (status == 0) {
        int64_t start = zc_clock_us();
        int rc = zmqcat_ping(bus, PING_MS);
        int64_t took = zc_clock_us() - start;
        if (rc == ZMQCAT_OK)
            snprintf(rtt, sizeof rtt, "%" PRId64 ".%03" PRId64, took / 1000, took % 1000);
        else
            status = zc_say_bus(args, bus, rc);
    }
    zc_out_init(&out, bus);
    if (args->json)
        say_json(args, &out, rtt);
    else
        say_text(args, &out, rtt);
    int written = zc_out_flush(&out);
    zc_out_done(&out);
    zmqcat_free(bus);
    return written != 0 ? written : status;
}
