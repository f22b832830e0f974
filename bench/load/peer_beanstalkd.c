/* beanstalkd: lines, in the default tube. It has no take, so its take is a reserve. */
#define _GNU_SOURCE /* memmem */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "load.h"

static void put(struct conn *c)
{
    conn_print(c, "put 0 0 60 %zu\r\n%s\r\n", payload_len, payload);
}

static void reserve(struct conn *c)
{
    conn_print(c, "reserve\r\n");
}

static void ack(struct conn *c)
{
    conn_print(c, "delete %s\r\n", c->token);
}

static void ping(struct conn *c)
{
    conn_print(c, "list-tube-used\r\n");
}

static bool starts(const uint8_t *data, size_t len, const char *word)
{
    return len >= strlen(word) && memcmp(data, word, strlen(word)) == 0;
}

static enum answer answer(struct conn *c, const uint8_t *data, size_t len, size_t *ret_used)
{
    const uint8_t *end = memchr(data, '\n', len);
    unsigned long long id;
    unsigned size;
    char line[128];
    if (end == NULL)
        return MORE;
    *ret_used = (size_t)(end - data) + 1;
    if (!starts(data, len, "RESERVED "))
        return starts(data, len, "INSERTED") || starts(data, len, "DELETED") ||
                       starts(data, len, "USING")
                   ? OK
                   : REFUSED;
    snprintf(line, sizeof(line), "%.*s", (int)*ret_used, data);
    if (sscanf(line, "RESERVED %llu %u", &id, &size) != 2)
        return REFUSED;
    *ret_used += size + 2;
    if (len < *ret_used)
        return MORE;
    snprintf(c->token, sizeof(c->token), "%llu", id);
    return MESSAGE;
}

const struct peer peer_beanstalkd = {
    .name = "beanstalkd",
    .request = {[PUT] = put,
                [TAKE] = reserve,
                [RESERVE] = reserve,
                [ACK] = ack,
                [PING] = ping,
                [WAIT] = reserve},
    .answer = answer,
};
