/* Our own protocol, zmqc.5. */
#define _GNU_SOURCE /* memmem */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "load.h"

#define HEADER 8
/* Where the value of "op" begins in what a hub writes: after {"v":1,"op":" */
#define OP_AT (HEADER + 13)

/* One frame with this operation and these further fields, payload last. */
static void frame(struct conn *c, const char *op, const char *fields, bool with_payload)
{
    size_t start = c->out.len;
    conn_add(c, "ZMQC....", HEADER);
    conn_print(c, "{\"v\":1,\"op\":\"%s\",\"id\":\"4f1d2c3b5a%06x-%llu\"%s%s%s%s}", op, c->number,
               (unsigned long long)c->id, fields, with_payload ? ",\"text\":\"" : "",
               with_payload ? payload : "", with_payload ? "\"" : "");
    uint32_t len = htonl((uint32_t)(c->out.len - start - HEADER));
    memcpy(c->out.data + start + 4, &len, 4);
}

static void queue(struct conn *c, const char *op, bool with_payload)
{
    char fields[128];
    snprintf(fields, sizeof(fields), ",\"name\":\"%.100s\"", options.queue);
    frame(c, op, fields, with_payload);
}

static void put(struct conn *c)
{
    queue(c, "put", true);
}

static void take(struct conn *c)
{
    queue(c, "take", false);
}

static void reserve(struct conn *c)
{
    queue(c, "reserve", false);
}

static void ack(struct conn *c)
{
    char fields[TOKEN_MAX + 32];
    snprintf(fields, sizeof(fields), ",\"delivery\":\"%s\"", c->token);
    frame(c, "ack", fields, false);
}

static void ping(struct conn *c)
{
    frame(c, "ping", "", false);
}

static void sub(struct conn *c)
{
    frame(c, "sub", ",\"name\":\"" TOPIC "\",\"after\":\"now\"", false);
}

static void pub(struct conn *c)
{
    frame(c, "pub", ",\"name\":\"" TOPIC "\"", true);
}

static void serve(struct conn *c)
{
    frame(c, "ready", ",\"name\":\"" SERVICE "\"", false);
}

static void req(struct conn *c)
{
    frame(c, "req", ",\"name\":\"" SERVICE "\"", true);
}

/* Answers by delivery, then is ready again. */
static void rep(struct conn *c)
{
    char fields[TOKEN_MAX + 32];
    size_t start = c->out.len;
    snprintf(fields, sizeof(fields), "\"delivery\":\"%s\"", c->token);
    conn_add(c, "ZMQC....", HEADER);
    conn_print(c, "{\"v\":1,\"op\":\"rep\",%s,\"text\":\"%s\"}", fields, payload);
    uint32_t len = htonl((uint32_t)(c->out.len - start - HEADER));
    memcpy(c->out.data + start + 4, &len, 4);
    serve(c);
}

/* The field of a delivery, kept for its acknowledgement. */
static void keep_delivery(struct conn *c, const uint8_t *data, size_t len)
{
    static const char key[] = "\"delivery\":\"";
    const uint8_t *at = memmem(data, len, key, sizeof(key) - 1), *end;
    c->token[0] = '\0';
    if (at == NULL)
        return;
    at += sizeof(key) - 1;
    end = memchr(at, '"', len - (size_t)(at - data));
    if (end != NULL && end - at < TOKEN_MAX)
        snprintf(c->token, sizeof(c->token), "%.*s", (int)(end - at), at);
}

static enum answer answer(struct conn *c, const uint8_t *data, size_t len, size_t *ret_used)
{
    uint32_t size;
    if (len < HEADER)
        return MORE;
    memcpy(&size, data + 4, 4);
    size = HEADER + ntohl(size);
    if (len < size)
        return MORE;
    *ret_used = size;
    if (size <= OP_AT || memcmp(data, "ZMQC", 4) != 0)
        return REFUSED;
    switch (data[OP_AT]) {
    case 'o': /* ok */
        return OK;
    case 'p': /* pong; or ping, a heartbeat, which any frame answers */
        if (data[OP_AT + 1] == 'o')
            return OK;
        frame(c, "pong", "", false);
        return NOTHING;
    case 'm': /* msg; a publication has no delivery */
        if (c->awaited > 0)
            keep_delivery(c, data, size);
        return MESSAGE;
    case 'r': /* rep */
        return MESSAGE;
    default:
        return memmem(data, size, "mailbox: empty", 14) != NULL ? EMPTY : REFUSED;
    }
}

const struct peer peer_zmqcat = {
    .name = "zmqcat",
    .request = {[PUT] = put,
                [TAKE] = take,
                [RESERVE] = reserve,
                [ACK] = ack,
                [PING] = ping,
                [WAIT] = take,
                [SUB] = sub,
                [PUB] = pub,
                [SERVE] = serve,
                [REQ] = req,
                [REP] = rep},
    .answer = answer,
};
