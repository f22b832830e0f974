/*
 * bench: what the running bus does in a second, each operation by one client after the other. It
 * uses a mailbox and a topic of its own, whose names begin with `zmqcat.bench.`, and leaves nothing
 * in them.
 */
#include "bench.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/json.h"
#include "base/text.h"
#include "open.h"
#include "say.h"
#include "signals.h"
#include "verbs.h"

#define CHUNK_MAX 500
#define LAST_S 2 /* to empty the mailbox, after a signal */

static int by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static uint32_t sample(const struct zc_bench *b, double part)
{
    return b->samples[(size_t)((double)(b->samples_count - 1) * part)];
}

static void print_row(struct zc_bench *b, size_t i)
{
    char text[400], times[120] = "";
    double seconds = (double)b->us / 1e6;
    double a_second = seconds > 0 ? (double)b->done / seconds : 0;
    bool timed = b->samples_count > 0, json = b->args->json;
    if (timed)
        qsort(b->samples, b->samples_count, sizeof *b->samples, by_size);
    if (timed)
        snprintf(times, sizeof times,
                 json ? ",\"p50_us\":%" PRIu32 ",\"p99_us\":%" PRIu32 ",\"max_us\":%" PRIu32
                      : "%9" PRIu32 " %9" PRIu32 " %9" PRIu32,
                 sample(b, 0.5), sample(b, 0.99), sample(b, 1));
    if (json)
        snprintf(text, sizeof text,
                 "{\"row\":\"%s\",\"size\":%" PRIu64 ",\"count\":%" PRIu64
                 ",\"seconds\":%.6f,\"per_second\":%.1f%s}\n",
                 zc_bench_rows[i].name, b->args->size, b->done, seconds, a_second, times);
    else
        snprintf(text, sizeof text, "%-10s %9.0f %s%s   %s\n", zc_bench_rows[i].name, a_second,
                 times, timed ? "" : "        -         -         -", zc_bench_rows[i].help);
    zc_out_str(&b->out, text);
}

static int run_row(struct zc_bench *b, size_t i)
{
    b->samples_count = 0;
    b->done = 0;
    b->us = 0;
    int rc = zc_bench_rows[i].run(b);
    if (rc != ZMQCAT_OK)
        return rc > 0 ? rc : zc_say_bus(b->args, b->bus, rc);
    if (zc_signals_count() > 0)
        return 1;
    rc = zc_bench_empty(b);
    if (rc != ZMQCAT_OK)
        return zc_say_bus(b->args, b->bus, rc);
    print_row(b, i);
    return zc_out_flush(&b->out);
}

/* Whether the row was asked for: all are without a name. */
static bool wanted(const struct zc_args *args, const char *name)
{
    for (int i = 0; i < args->rest_count; i++)
        if (strcmp(args->rest[i], name) == 0)
            return true;
    return args->rest_count == 0;
}

static int check_rows(const struct zc_args *args)
{
    for (int k = 0; k < args->rest_count; k++) {
        size_t i = 0;
        while (zc_bench_rows[i].name != NULL && strcmp(args->rest[k], zc_bench_rows[i].name) != 0)
            i++;
        if (zc_bench_rows[i].name == NULL)
            return zc_say_usage(args->verb, "say put, pipelined, take, work, pub or req");
    }
    return 0;
}

/* The member `mailbox-cap` of the limits in what info answered, or 0. */
static int64_t cap_of(uint8_t *json, size_t len)
{
    struct zc_json j;
    struct zc_slice key;
    struct zc_json_value v;
    bool first = true, bad = false;
    int64_t cap = 0;
    zc_json_init(&j, json, len);
    if (!zc_json_eat(&j, '{'))
        return 0;
    while (zc_json_member(&j, &first, 1, &key, &bad, &v)) {
        if (zc_slice_is(key, "limits") && v.type == ZC_JSON_OBJECT)
            return cap_of((uint8_t *)(uintptr_t)v.text.data, v.text.len); /* in our copy */
        if (zc_slice_is(key, "mailbox-cap") && v.type == ZC_JSON_NUMBER)
            return zc_json_int(v.text, &cap) ? cap : 0;
    }
    return 0;
}

/* The hub's limit of messages in a mailbox bounds a chunk. */
static int find_chunk(struct zc_bench *b)
{
    const char *json;
    size_t len;
    struct zc_buf copy = {0};
    int64_t cap = 0;
    int rc = zmqcat_query(b->bus, "info", NULL, 0, NULL, &json, &len);
    if (rc == ZMQCAT_OK && zc_buf_append(&copy, json, len) == 0)
        cap = cap_of(copy.data, copy.len);
    zc_buf_done(&copy);
    b->chunk = cap > 0 && cap < CHUNK_MAX ? (uint64_t)cap : CHUNK_MAX;
    return rc;
}

static int measure(struct zc_bench *b)
{
    uint8_t seed[8];
    char hex[2 * sizeof seed + 1] = "";
    int rc = find_chunk(b), status = 0;
    if (rc != ZMQCAT_OK)
        return zc_say_bus(b->args, b->bus, rc);
    if (getentropy(seed, sizeof seed) != 0)
        return zc_say_fail(1, b->args->verb, NULL, "the system gives no random bytes");
    zc_text_hex(hex, zc_slice(seed, sizeof seed));
    b->name_len = (size_t)snprintf(b->name, sizeof b->name, "zmqcat.bench.%s", hex);
    memset(b->payload, 'x', b->args->size);
    if (!b->args->json)
        zc_out_str(&b->out, "            a second    p50 us    p99 us    max us\n");
    for (size_t i = 0; zc_bench_rows[i].name != NULL && status == 0; i++)
        if (wanted(b->args, zc_bench_rows[i].name))
            status = run_row(b, i);
    if (status != 0)
        (void)!zc_bench_empty(b);
    return status;
}

int zc_bench_run(const struct zc_args *args)
{
    struct zc_bench b = {.args = args};
    int status = check_rows(args);
    if (status == 0)
        status = zc_open_polled(args, zc_signals_poll, NULL, &b.bus);
    if (status != 0)
        return status;
    zc_out_init(&b.out, NULL);
    b.payload = malloc(args->size + 1);
    b.samples = malloc(ZC_BENCH_SAMPLES_MAX * sizeof *b.samples);
    if (b.payload == NULL || b.samples == NULL)
        status = zc_say_fail(1, args->verb, NULL, "out of memory");
    else if (!zc_signals_catch(NULL, LAST_S))
        status = zc_say_fail(1, args->verb, NULL, strerror(errno));
    else
        status = measure(&b);
    zc_out_done(&b.out);
    zmqcat_free(b.bus);
    free(b.payload);
    free(b.samples);
    zc_signals_end();
    return status;
}
