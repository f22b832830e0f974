/* The rows of `bench`: one operation after the other, each timed. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "clock.h"
#include "open.h"
#include "say.h"
#include "signals.h"

#define TIME_MAX_US 2000000 /* of a row, unless --count */
#define COUNT_MAX 10000000
#define WINDOW 64
#define ANSWER_MS 30000

static bool more(const struct zc_bench *b)
{
    if (zc_signals_count() > 0)
        return false;
    return b->args->count > 0 ? b->done < b->args->count
                              : b->us < TIME_MAX_US && b->done < COUNT_MAX;
}

static void begin(struct zc_bench *b)
{
    b->began_us = zc_clock_us();
}

/* The time since begin is that of `count` operations; of one it is a sample. */
static void end(struct zc_bench *b, uint64_t count)
{
    int64_t us = zc_clock_us() - b->began_us;
    b->us += us;
    b->done += count;
    if (count == 1 && b->samples_count < ZC_BENCH_SAMPLES_MAX)
        b->samples[b->samples_count++] = us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
}

static int put(struct zc_bench *b)
{
    return zmqcat_put(b->bus, b->name, b->name_len, b->payload, b->args->size, NULL);
}

int zc_bench_empty(struct zc_bench *b)
{
    return zmqcat_purge(b->bus, b->name, b->name_len, NULL);
}

/* Puts, and between them an empty mailbox that is not counted. */
static int row_put(struct zc_bench *b)
{
    int rc = ZMQCAT_OK;
    for (uint64_t n = 1; rc == ZMQCAT_OK && more(b); n++) {
        begin(b);
        rc = put(b);
        end(b, 1);
        if (rc == ZMQCAT_OK && n % b->chunk == 0)
            rc = zc_bench_empty(b);
    }
    return rc;
}

static int row_pipelined(struct zc_bench *b)
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
            rc = zc_bench_empty(b);
    }
    return rc;
}

static int row_take(struct zc_bench *b)
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

static int row_work(struct zc_bench *b)
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
static int row_pub(struct zc_bench *b)
{
    struct zmqcat_msg m;
    struct zmqcat_put_options last = {.ttl_ms = 1}; /* its value is forgotten */
    struct zmqcat *sub = NULL;
    int rc = zc_open_again(b->args, zc_signals_poll, NULL, &sub);
    if (rc == ZMQCAT_OK)
        rc = zmqcat_sub(sub, b->name, b->name_len);
    int published = ZMQCAT_OK;
    while (rc == ZMQCAT_OK && published == ZMQCAT_OK && more(b)) {
        begin(b);
        published = zmqcat_pub(b->bus, b->name, b->name_len, b->payload, b->args->size, NULL, NULL);
        if (published == ZMQCAT_OK)
            rc = zmqcat_next(sub, ANSWER_MS, &m);
        end(b, 1);
    }
    if (rc != ZMQCAT_OK)
        rc = zc_say_bus(b->args, sub, rc);
    zmqcat_free(sub);
    if (published == ZMQCAT_OK)
        published = zmqcat_pub(b->bus, b->name, b->name_len, "", 0, &last, NULL);
    return rc != 0 ? rc : published;
}

/* Another process, which answers requests until its parent has gone. */
static void answer_requests(const struct zc_bench *b)
{
    struct zmqcat *bus;
    struct zmqcat_msg m;
    pid_t parent = getppid();
    zc_signals_default();
    int rc = zc_open_again(b->args, NULL, NULL, &bus);
    while (rc == ZMQCAT_OK && getppid() == parent) {
        rc = zmqcat_ready(bus, b->name, b->name_len, 1000, &m);
        if (rc == ZMQCAT_OK)
            rc = zmqcat_rep(bus, m.id, m.id_len, m.name, m.name_len, m.payload, m.payload_len);
        else if (rc == ZMQCAT_TIMEOUT)
            rc = ZMQCAT_OK;
    }
    _exit(0);
}

static int row_req(struct zc_bench *b)
{
    struct zmqcat_msg m;
    char id[128];
    int rc = ZMQCAT_OK;
    pid_t worker = fork();
    if (worker == 0)
        answer_requests(b);
    for (uint64_t n = 0; rc == ZMQCAT_OK && worker > 0 && more(b); n++) {
        snprintf(id, sizeof id, "%s.%" PRIu64, b->name, n);
        begin(b);
        rc = zmqcat_req(b->bus, id, b->name, b->name_len, b->payload, b->args->size, ANSWER_MS, &m);
        if (n > 0) /* the first waits for the worker to start */
            end(b, 1);
    }
    if (worker > 0) {
        kill(worker, SIGTERM);
        waitpid(worker, NULL, 0);
    }
    return rc;
}

const struct zc_bench_row zc_bench_rows[] = {
    {"put", "put, each answered before the next", row_put},
    {"pipelined", "put, 64 under way", row_pipelined},
    {"take", "take", row_take},
    {"work", "put, reserve, ack", row_work},
    {"pub", "pub, delivered to a subscriber", row_pub},
    {"req", "req, answered by another process", row_req},
    {NULL},
};
