/* NATS: core publish, subscribe and request. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "load.h"

static void ping(struct conn *c)
{
    conn_print(c, "PING\r\n");
}

static void greet(struct conn *c)
{
    conn_print(c, "CONNECT {\"verbose\":false,\"pedantic\":false,\"echo\":false}\r\nPING\r\n");
    conn_wait(c);
}

static void pub(struct conn *c)
{
    conn_print(c, "PUB " TOPIC " %zu\r\n%s\r\n", payload_len, payload);
}

/* The PONG is the answer, also below. */
static void sub(struct conn *c)
{
    conn_print(c, "SUB " TOPIC " 1\r\nPING\r\n");
}

static void serve(struct conn *c)
{
    conn_print(c, "SUB " SERVICE " 1\r\nPING\r\n");
}

/* The first request makes the inbox. */
static void req(struct conn *c)
{
    if (c->token[0] == '\0') {
        snprintf(c->token, sizeof(c->token), "inbox.%u", c->number);
        conn_print(c, "SUB %s 1\r\n", c->token);
    }
    conn_print(c, "PUB " SERVICE " %s %zu\r\n%s\r\n", c->token, payload_len, payload);
}

static void rep(struct conn *c)
{
    conn_print(c, "PUB %s %zu\r\n%s\r\n", c->token, payload_len, payload);
}

/* MSG subject sid [reply-to] bytes; keeps where to reply. */
static enum answer message(struct conn *c, const uint8_t *data, size_t line, size_t len,
                           size_t *ret_used)
{
    const char *words[5], *at = (const char *)data;
    int n = 0;
    for (const char *end = at + line; at < end && n < 5;) {
        words[n++] = at;
        while (at < end && *at != ' ')
            at++;
        at++;
    }
    if (n < 4)
        return REFUSED;
    *ret_used = line + strtoul(words[n - 1], NULL, 10) + 2;
    if (len < *ret_used)
        return MORE;
    if (n == 5)
        snprintf(c->token, sizeof(c->token), "%.*s", (int)(words[4] - words[3] - 1), words[3]);
    return MESSAGE;
}

static enum answer answer(struct conn *c, const uint8_t *data, size_t len, size_t *ret_used)
{
    const uint8_t *end = memchr(data, '\n', len);
    if (end == NULL)
        return MORE;
    *ret_used = (size_t)(end - data) + 1;
    switch (data[0]) {
    case 'M':
        return message(c, data, *ret_used, len, ret_used);
    case 'I': /* INFO */
        return NOTHING;
    case 'P':
        if (data[1] == 'O')
            return OK;
        conn_print(c, "PONG\r\n");
        return NOTHING;
    case '+':
        return OK;
    default:
        return REFUSED;
    }
}

const struct peer peer_nats = {
    .name = "nats",
    .request = {[PING] = ping, [SUB] = sub, [PUB] = pub, [SERVE] = serve, [REQ] = req, [REP] = rep},
    .answer = answer,
    .greet = greet,
    .serve_answered = true,
};
