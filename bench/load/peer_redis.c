/* Redis: lists as queues, with the reliable-queue pattern of its documentation for leases. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "load.h"

/* Of a command in the form of an array of strings. */
static void command(struct conn *c, const char *const *words)
{
    int n = 0;
    while (words[n] != NULL)
        n++;
    conn_print(c, "*%d\r\n", n);
    for (int i = 0; i < n; i++)
        conn_print(c, "$%zu\r\n%s\r\n", strlen(words[i]), words[i]);
}

static void put(struct conn *c)
{
    command(c, (const char *[]){"LPUSH", QUEUE, payload, NULL});
}

static void take(struct conn *c)
{
    command(c, (const char *[]){"RPOP", QUEUE, NULL});
}

/* The list of what this worker holds. */
static const char *held(const struct conn *c)
{
    static char name[32];
    snprintf(name, sizeof(name), "held.%u", c->number);
    return name;
}

static void reserve(struct conn *c)
{
    command(c, (const char *[]){"RPOPLPUSH", QUEUE, held(c), NULL});
}

static void ack(struct conn *c)
{
    command(c, (const char *[]){"LREM", held(c), "1", c->held, NULL});
}

static void ping(struct conn *c)
{
    command(c, (const char *[]){"LLEN", QUEUE, NULL});
}

static void wait(struct conn *c)
{
    command(c, (const char *[]){"BRPOP", QUEUE, "0", NULL});
}

static void sub(struct conn *c)
{
    command(c, (const char *[]){"SUBSCRIBE", TOPIC, NULL});
}

static void pub(struct conn *c)
{
    command(c, (const char *[]){"PUBLISH", TOPIC, payload, NULL});
}

static void serve(struct conn *c)
{
    command(c, (const char *[]){"BRPOP", SERVICE, "0", NULL});
}

/* A request is an element of the service's list; the reply comes to a list of the asker. */
static void req(struct conn *c)
{
    command(c, (const char *[]){"LPUSH", SERVICE, payload, NULL});
    command(c, (const char *[]){"BRPOP", "reply", "0", NULL});
}

static void rep(struct conn *c)
{
    command(c, (const char *[]){"LPUSH", "reply", payload, NULL});
    serve(c);
}

/* Length of one value; 0: not all is there. */
static size_t value_len(const uint8_t *data, size_t len)
{
    const uint8_t *end = len > 0 ? memchr(data, '\n', len) : NULL;
    if (end == NULL)
        return 0;
    size_t at = (size_t)(end - data) + 1;
    long n = data[0] == '$' || data[0] == '*' ? strtol((const char *)data + 1, NULL, 10) : -1;
    if (n < 0)
        return at;
    if (data[0] == '$') {
        at += (size_t)n + 2;
        return len < at ? 0 : at;
    }
    for (long i = 0; i < n; i++) {
        size_t part = value_len(data + at, len - at);
        if (part == 0)
            return 0;
        at += part;
    }
    return at;
}

/* Of $100\r\n...\r\n, for its acknowledgement. */
static void keep_payload(struct conn *c, const uint8_t *data, size_t len)
{
    size_t head = (size_t)((const uint8_t *)memchr(data, '\n', len) - data) + 1;
    if (c->held == NULL)
        c->held = malloc(PAYLOAD_MAX + 1);
    if (c->held == NULL || len - head - 2 > PAYLOAD_MAX)
        fail("redis: a payload that was not put");
    memcpy(c->held, data + head, len - head - 2);
    c->held[len - head - 2] = '\0';
}

static enum answer answer(struct conn *c, const uint8_t *data, size_t len, size_t *ret_used)
{
    *ret_used = value_len(data, len);
    if (*ret_used == 0)
        return MORE;
    switch (data[0]) {
    case '-':
        return REFUSED;
    case '$':
        if (data[1] == '-')
            return EMPTY;
        keep_payload(c, data, *ret_used);
        return MESSAGE;
    case '*': /* the answer to SUBSCRIBE is no message: *3 $9 subscribe */
        return len > 8 && memcmp(data + 4, "$9", 2) == 0 ? OK : MESSAGE;
    default:
        return OK;
    }
}

const struct peer peer_redis = {
    .name = "redis",
    .request = {[PUT] = put,
                [TAKE] = take,
                [RESERVE] = reserve,
                [ACK] = ack,
                [PING] = ping,
                [WAIT] = wait,
                [SUB] = sub,
                [PUB] = pub,
                [SERVE] = serve,
                [REQ] = req,
                [REP] = rep},
    .answer = answer,
};
