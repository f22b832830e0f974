/*
 * bench: what the running bus does in a second, each operation by one client after the other. It
 * uses a mailbox and a topic of its own, whose names begin with `zmqcat.bench.`, and leaves nothing
 * in them.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/json.h"
#include "base/text.h"
#include "clock.h"
#include "open.h"
#include "out.h"
#include "say.h"
#include "verbs.h"

#define TIME_MAX_US 2000000 /* of a row, unless --count */
#define COUNT_MAX 10000000
#define SAMPLES_MAX 200000
#define CHUNK_MAX 500 /* messages in the mailbox at once */
#define WINDOW 64
#define ANSWER_MS 30000

struct bench {
    const struct zc_args *args;
    struct zmqcat *bus, *sub;
    struct zc_out out;
    char name[64];
    size_t name_len;
    char *payload;
    uint64_t chunk;
    pid_t worker; /* 0: none */
    /* of the row that runs */
    uint32_t *samples; /* us of each operation */
    size_t samples_count;
    uint64_t done;
    int64_t us; /* spent in it */
    int64_t began_us;
};

static volatile sig_atomic_t ended_by;

static void on_signal(int sig)
{
    ended_by = sig;
}

static bool more(const struct bench *b)
{
    if (ended_by != 0)
        return false;
    return b->args->count > 0 ? b->done < b->args->count
                              : b->us < TIME_MAX_US && b->done < COUNT_MAX;
}

static void begin(struct bench *b)
{
    b->began_us = zc_clock_us();
}

/* The time since begin is that of `count` operations; of one it is a sample. */
static void end(struct bench *b, uint64_t count)
{
    int64_t us = zc_clock_us() - b->began_us;
    b->us += us;
    b->done += count;
    if (count == 1 && b->samples_count < SAMPLES_MAX)
        b->samples[b->samples_count++] = us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
}

static int put(struct bench *b)
{
    return zmqcat_put(b->bus, b->name, b->name_len, b->payload, b->args->size, NULL);
}

static int empty(struct bench *b)
{
    return zmqcat_purge(b->bus, b->name, b->name_len, NULL);
}

/* Puts, and between them an empty mailbox that is not counted. */
static int row_put(struct bench *b)
{
    int rc = ZMQCAT_OK;
    for (uint64_t n = 1; rc == ZMQCAT_OK && more(b); n++) {
        begin(b);
        rc = put(b);
        end(b, 1);
        if (rc == ZMQCAT_OK && n % b->chunk == 0)
            rc = empty(b);
    }
    return rc;
}

static int row_pipelined(struct bench *b)
{
    int rc = ZMQCAT_OK;
    while (rc == ZMQCAT_OK && more(b)) {
        uint64_t sent = 0, answered = 0, count = b->chunk;
        if (b->args->count > 0 && b->args->count - b->done < count)
            count = b->args->count - b->done;
        begin(b);
        while (rc == ZMQCAT_OK && answered < count) {
            if (sent < count && sent - answered < WINDOW) {
                rc =
                    zmqcat_put_start(b->bus, b->name, b->name_len, b->payload, b->args->size, NULL);
                sent++;
            } else {
                rc = zmqcat_put_finish(b->bus, ANSWER_MS);
                answered++;
            }
        }
        end(b, count);
        if (rc == ZMQCAT_OK)
            rc = empty(b);
    }
    return rc;
}

static int row_take(struct bench *b)
{
    struct zmqcat_msg m;
    int rc = ZMQCAT_OK;
    while (rc == ZMQCAT_OK && more(b)) {
        uint64_t there = 0;
        for (; rc == ZMQCAT_OK && there < b->chunk; there++)
            rc = put(b);
        while (rc == ZMQCAT_OK && there-- > 0 && more(b)) {
            begin(b);
            rc = zmqcat_take(b->bus, b->name, b->name_len, ANSWER_MS, &m);
            end(b, 1);
        }
    }
    return rc;
}

static int row_work(struct bench *b)
{
    struct zmqcat_msg m;
    int rc = ZMQCAT_OK;
    while (rc == ZMQCAT_OK && more(b)) {
        begin(b);
        rc = put(b);
        if (rc == ZMQCAT_OK)
            rc = zmqcat_reserve(b->bus, b->name, b->name_len, 60, ANSWER_MS, &m);
        if (rc == ZMQCAT_OK)
            rc = zmqcat_ack(b->bus, m.delivery, m.delivery_len);
        end(b, 1);
    }
    return rc;
}

/* A publication and its delivery to a subscriber. */
static int row_pub(struct bench *b)
{
    struct zmqcat_msg m;
    struct zmqcat_put_options last = {.ttl_ms = 1}; /* its value is forgotten */
    int rc = zc_open_again(b->args, &b->sub);
    if (rc == ZMQCAT_OK)
        rc = zmqcat_sub(b->sub, b->name, b->name_len);
    while (rc == ZMQCAT_OK && more(b)) {
        begin(b);
        rc = zmqcat_pub(b->bus, b->name, b->name_len, b->payload, b->args->size, NULL, NULL);
        if (rc == ZMQCAT_OK)
            rc = zmqcat_next(b->sub, ANSWER_MS, &m);
        end(b, 1);
    }
    zmqcat_free(b->sub);
    b->sub = NULL;
    int removed = zmqcat_pub(b->bus, b->name, b->name_len, "", 0, &last, NULL);
    return rc != ZMQCAT_OK ? rc : removed;
}

/* Another process, which answers requests until its parent has gone. */
static void answer_requests(const struct bench *b)
{
    struct zmqcat *bus;
    struct zmqcat_msg m;
    pid_t parent = getppid();
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    int rc = zc_open_again(b->args, &bus);
    while (rc == ZMQCAT_OK && getppid() == parent) {
        rc = zmqcat_ready(bus, b->name, b->name_len, 1000, &m);
        if (rc == ZMQCAT_OK)
            rc = zmqcat_rep(bus, m.id, m.id_len, m.name, m.name_len, m.payload, m.payload_len);
        else if (rc == ZMQCAT_TIMEOUT)
            rc = ZMQCAT_OK;
    }
    _exit(0);
}

static void end_worker(struct bench *b)
{
    if (b->worker <= 0)
        return;
    kill(b->worker, SIGTERM);
    waitpid(b->worker, NULL, 0);
    b->worker = 0;
}

static int row_req(struct bench *b)
{
    struct zmqcat_msg m;
    char id[128];
    int rc = ZMQCAT_OK;
    b->worker = fork();
    if (b->worker == 0)
        answer_requests(b);
    for (uint64_t n = 0; rc == ZMQCAT_OK && b->worker > 0 && more(b); n++) {
        snprintf(id, sizeof id, "%s.%" PRIu64, b->name, n);
        begin(b);
        rc = zmqcat_req(b->bus, id, b->name, b->name_len, b->payload, b->args->size, ANSWER_MS, &m);
        if (n > 0) /* the first waits for the worker to start */
            end(b, 1);
    }
    end_worker(b);
    return rc;
}

static const struct {
    const char *name, *help;
    int (*run)(struct bench *b);
} rows[] = {
    {"put", "put, each answered before the next", row_put},
    {"pipelined", "put, 64 under way", row_pipelined},
    {"take", "take", row_take},
    {"work", "put, reserve, ack", row_work},
    {"pub", "pub, delivered to a subscriber", row_pub},
    {"req", "req, answered by another process", row_req},
};

static int by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static uint32_t sample(const struct bench *b, double part)
{
    return b->samples[(size_t)((double)(b->samples_count - 1) * part)];
}

static void print_row(struct bench *b, size_t i)
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
                 rows[i].name, b->args->size, b->done, seconds, a_second, times);
    else
        snprintf(text, sizeof text, "%-10s %9.0f %s%s   %s\n", rows[i].name, a_second, times,
                 timed ? "" : "        -         -         -", rows[i].help);
    zc_out_str(&b->out, text);
}

static int run_row(struct bench *b, size_t i)
{
    b->samples_count = 0;
    b->done = 0;
    b->us = 0;
    int rc = rows[i].run(b);
    if (rc != ZMQCAT_OK)
        return zc_say_bus(b->args, b->bus, rc);
    if (ended_by != 0)
        return 1;
    rc = empty(b);
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
        while (i < ZC_ARRAY_LEN(rows) && strcmp(args->rest[k], rows[i].name) != 0)
            i++;
        if (i == ZC_ARRAY_LEN(rows))
            return zc_say_usage(args->verb, "say put, pipelined, take, work, pub or req");
    }
    return 0;
}

/* The hub's limit of messages in a mailbox bounds a chunk. */
static int find_chunk(struct bench *b)
{
    const char *json, *found = NULL;
    size_t len;
    int rc = zmqcat_query(b->bus, "info", NULL, 0, NULL, &json, &len);
    static const char key[] = "\"mailbox-cap\":";
    for (size_t i = 0; rc == ZMQCAT_OK && i + sizeof key < len && found == NULL; i++)
        if (memcmp(json + i, key, sizeof key - 1) == 0)
            found = json + i + sizeof key - 1;
    uint64_t cap = 0;
    for (; found != NULL && found < json + len && *found >= '0' && *found <= '9'; found++)
        cap = cap * 10 + (uint64_t)(*found - '0');
    b->chunk = cap > 0 && cap < CHUNK_MAX ? cap : CHUNK_MAX;
    return rc;
}

static int measure(struct bench *b)
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
    for (size_t i = 0; i < ZC_ARRAY_LEN(rows) && status == 0; i++)
        if (wanted(b->args, rows[i].name))
            status = run_row(b, i);
    if (status != 0)
        (void)!empty(b);
    return status;
}

int zc_bench_run(const struct zc_args *args)
{
    struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct bench b = {.args = args};
    int status = check_rows(args);
    if (status == 0)
        status = zc_open_bus(args, &b.bus);
    if (status != 0)
        return status;
    zc_out_init(&b.out, NULL);
    b.payload = malloc(args->size + 1);
    b.samples = malloc(SAMPLES_MAX * sizeof *b.samples);
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    if (b.payload == NULL || b.samples == NULL)
        status = zc_say_fail(1, args->verb, NULL, "out of memory");
    else
        status = measure(&b);
    zc_out_done(&b.out);
    zmqcat_free(b.bus);
    free(b.payload);
    free(b.samples);
    if (ended_by != 0) {
        signal(ended_by, SIG_DFL);
        raise(ended_by);
    }
    return status;
}
