/*
 * Decoding of messages: our scanner against cJSON_Parse, on the same frames in the same run. cJSON
 * gets no strictness, no base64 and no look-up of fields on top, which it would need; we do all of
 * it. Prints one row a frame: bytes, nanoseconds a frame for each, and how many times ours is
 * faster. Prints also what encoding a frame costs us.
 */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "zmqc/msg.h"

#define RUN_NS 200000000.0 /* of each measurement */

static struct zc_msg msg;

/* Time of this process alone: other load hardly shows. */
static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void fail(const char *what)
{
    fprintf(stderr, "bench/json: %s failed\n", what);
    exit(1);
}

/* Decoding writes over its input, so each round copies it first; cJSON's rounds do the same. */
static void ours(const char *json, size_t len, uint8_t *work)
{
    const char *reason;
    memcpy(work, json, len);
    if (zc_msg_decode(&msg, work, len, &reason) != 0)
        fail(reason);
}

static void theirs(const char *json, size_t len, uint8_t *work)
{
    memcpy(work, json, len);
    cJSON *tree = cJSON_ParseWithLength((const char *)work, len);
    if (tree == NULL)
        fail("cJSON_Parse");
    cJSON_Delete(tree);
}

static void encoding(const char *json, size_t len, uint8_t *work)
{
    int err;
    (void)json, (void)len, (void)work;
    struct zc_block *b = zc_msg_encode(&msg, &err);
    if (b == NULL)
        fail("encoding");
    zc_block_unref(b);
}

/* Nanoseconds of one call; the best of five runs, which other load disturbs least. */
static double measure(void (*work)(const char *, size_t, uint8_t *), const char *json, size_t len,
                      uint8_t *buffer)
{
    double best = 1e18;
    for (int run = 0; run < 5; run++) {
        double start = now_ns(), spent;
        long calls = 0;
        do {
            for (int i = 0; i < 16; i++)
                work(json, len, buffer);
            calls += 16;
            spent = now_ns() - start;
        } while (spent < RUN_NS / 5);
        if (spent / (double)calls < best)
            best = spent / (double)calls;
    }
    return best;
}

static void row(const char *name, const char *json)
{
    size_t len = strlen(json);
    uint8_t *buffer = malloc(len);
    if (buffer == NULL)
        fail("malloc");
    double cjson = measure(theirs, json, len, buffer);
    double own = measure(ours, json, len, buffer);
    double encode = measure(encoding, json, len, buffer);
    printf("%-16s %8zu %10.0f %10.0f %7.1fx %10.0f\n", name, len, cjson, own, cjson / own, encode);
    free(buffer);
}

/* A put whose field holds n bytes. */
static void large_row(const char *name, const char *field, size_t n)
{
    static const char head[] = "{\"v\":1,\"op\":\"put\",\"id\":\"a1\",\"name\":\"jobs\",\"";
    char *json = malloc(n + 200);
    if (json == NULL)
        fail("malloc");
    int start = sprintf(json, "%s%s\":\"", head, field);
    memset(json + start, 'x', n);
    strcpy(json + start + n, "\"}");
    row(name, json);
    free(json);
}

int main(void)
{
    printf("%-16s %8s %10s %10s %8s %10s\n", "frame", "bytes", "cJSON ns", "ours ns", "ratio",
           "encode ns");
    row("ping", "{\"v\":1,\"op\":\"ping\",\"id\":\"p-17\"}");
    row("put", "{\"v\":1,\"op\":\"put\",\"id\":\"4f1d2c3b5a697887-42\",\"name\":\"jobs\",\"text\":"
               "\"hello, world\"}");
    row("ack", "{\"v\":1,\"op\":\"ack\",\"id\":\"4f1d2c3b5a697887-43\",\"delivery\":"
               "\"2c2f258e58a237f0752a2aca\"}");
    row("msg",
        "{\"v\":1,\"op\":\"msg\",\"id\":\"s17:4f1d2c3b5a697887-42\",\"name\":\"jobs\",\"from\":"
        "\"alice\",\"text\":\"hello, world\",\"body\":\"aGVsbG8sIHdvcmxk\",\"lease\":1796064985,"
        "\"delivery\":\"2c2f258e58a237f0752a2aca\",\"attempt\":1,\"at\":1796064925123,\"by\":"
        "\"uid:1000\"}");
    row("headers", "{\"v\":1,\"op\":\"put\",\"id\":\"a1\",\"name\":\"jobs\",\"headers\":{\"trace\":"
                   "\"00-4bf92f3577b34da6\",\"kind\":\"mail\"},\"text\":\"caf\xc3\xa9 \\n done\"}");
    large_row("text 1 KiB", "text", 1024);
    large_row("body 1 KiB", "body", 1368);
    large_row("text 1 MiB", "text", 1048576);
    large_row("body 1 MiB", "body", 1398104);
    return 0;
}
