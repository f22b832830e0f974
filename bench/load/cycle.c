/* Connections that go through the same steps over and over, each with its own requests. */
#include <stdlib.h>
#include <string.h>

#include "load.h"

#define STEPS_MAX 8

static const char *const names[OPERATIONS] = {
    [PUT] = "put", [TAKE] = "take", [RESERVE] = "reserve",
    [ACK] = "ack", [PING] = "ping", [PUB] = "pub",
};

static enum operation steps[STEPS_MAX];
static unsigned steps_count;
static long started, finished;

static void parse_steps(void)
{
    const char *at = options.steps;
    while (*at != '\0') {
        size_t len = strcspn(at, ",");
        enum operation op = 0;
        while (op < OPERATIONS &&
               (names[op] == NULL || strlen(names[op]) != len || memcmp(names[op], at, len) != 0))
            op++;
        if (op == OPERATIONS || steps_count == STEPS_MAX)
            fail("steps: %s", options.steps);
        steps[steps_count++] = op;
        at += len + (at[len] == ',');
    }
    if (steps_count == 0 || (steps_count > 1 && options.pipeline > 1))
        fail("pipeline wants one step");
}

/* Sends the requests of a step; at the beginning of a round only while some are left. */
static void begin(struct conn *c)
{
    long batch = options.pipeline;
    if (c->step == 0) {
        if (batch > options.count - started)
            batch = options.count - started;
        started += batch;
        c->sent_ns = now_ns();
    }
    c->awaited = (unsigned)batch;
    for (long i = 0; i < batch; i++)
        conn_request(c, steps[c->step]);
    if (batch > 0)
        conn_send(c);
}

static void answered(struct conn *c, enum answer a)
{
    if (a == EMPTY)
        fail("%s: the queue is empty", options.peer->name);
    if (c->awaited == 0)
        fail("%s: more answers than requests", options.peer->name);
    if (--c->awaited > 0)
        return;
    if (++c->step == steps_count) {
        c->step = 0;
        latency_add(now_ns() - c->sent_ns);
        finished += options.pipeline;
    }
    begin(c);
}

static void take_in(struct conn *c)
{
    enum answer a;
    if (!conn_receive(c))
        fail("%s has closed the connection", options.peer->name);
    while ((a = conn_next(c)) != MORE)
        answered(c, a);
}

void work_cycle(void)
{
    struct conn *ready[CONNS_READY];
    struct conn *conns = conns_open(options.conns);
    parse_steps();
    latency_start(options.count);
    uint64_t start = now_ns();
    for (long i = 0; i < options.conns; i++)
        begin(&conns[i]);
    while (finished < options.count) {
        if (options.conns == 1) {
            take_in(&conns[0]);
            continue;
        }
        size_t n = conns_wait(ready, CONNS_READY);
        for (size_t i = 0; i < n; i++)
            take_in(ready[i]);
    }
    result_print((uint64_t)options.count, now_ns() - start);
    conns_close(conns, options.conns);
}
