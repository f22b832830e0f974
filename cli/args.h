/*
 * The options of all verbs in one table. Each verb names the ones it knows; any other is unknown.
 */
#ifndef ZC_CLI_ARGS_H
#define ZC_CLI_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/zmqcat.h"

#define ZC_ARGS_HEADERS_MAX 256

enum zc_args_option {
    ZC_ARGS_LISTEN = 1 << 0,
    ZC_ARGS_NAME = 1 << 1,
    ZC_ARGS_CONTROL = 1 << 2,
    ZC_ARGS_FILE = 1 << 3,
    ZC_ARGS_HEADER = 1 << 4,
    ZC_ARGS_ID = 1 << 5,
    ZC_ARGS_DELAY = 1 << 6,
    ZC_ARGS_TTL = 1 << 7,
    ZC_ARGS_COUNT = 1 << 8,
    ZC_ARGS_RAW = 1 << 9,
    ZC_ARGS_WAIT = 1 << 10,
    ZC_ARGS_JSON = 1 << 11,
    ZC_ARGS_LEASE = 1 << 12,
    ZC_ARGS_ACK = 1 << 13,
    ZC_ARGS_NEED_SUB = 1 << 14,
    ZC_ARGS_NO_REPLAY = 1 << 15,
    ZC_ARGS_TIMEOUT = 1 << 16,
    ZC_ARGS_RETRIES = 1 << 17,
    ZC_ARGS_VERBOSE = 1 << 18,
    ZC_ARGS_HELP = 1 << 19,
    ZC_ARGS_HUB = 1 << 20,
    ZC_ARGS_CLIENT = 1 << 21,
    ZC_ARGS_LINES = 1 << 22,
    ZC_ARGS_FOLLOW = 1 << 23,
    ZC_ARGS_JOBS = 1 << 24,
    ZC_ARGS_REPLY = 1 << 25,
    ZC_ARGS_INTERVAL = 1 << 26,
    ZC_ARGS_SIZE = 1 << 27,
    ZC_ARGS_IF_CONSUMER = 1 << 28,
    ZC_ARGS_FILTER = 1 << 29,
};

/* What the command line said. Strings point into argv. */
struct zc_args {
    const char *verb;
    const char *listen, *control, *name, *file, *id; /* NULL: not given */
    struct zmqcat_header headers[ZC_ARGS_HEADERS_MAX];
    size_t headers_count;
    int64_t delay_ms, ttl_ms;
    int64_t wait_ms; /* -1: for ever */
    int64_t timeout_ms, lease_ms;
    uint64_t count; /* 0: not given */
    uint64_t retries;
    uint64_t jobs;
    int64_t interval_ms;
    uint64_t size;      /* bytes */
    const char *filter; /* NULL: not given */
    bool raw, json, ack, need_sub, no_replay, verbose, help, hub, client;
    bool lines, follow, reply, if_consumer;
    char **rest; /* positional arguments; freed by zc_args_done */
    int rest_count;
};

/* argv[0] is the verb. Returns 0, or the exit status after saying what is wrong. */
int zc_args_parse(int argc, char **argv, uint32_t known, struct zc_args *ret_args);
void zc_args_done(struct zc_args *args);
/* Prints one line for each option of known to stdout. */
void zc_args_help(uint32_t known);

/* One row of the table, for whoever lists options. */
struct zc_args_row {
    uint32_t bit; /* enum zc_args_option */
    const char *name;
    char letter;       /* 0: none */
    const char *value; /* NULL: a flag */
    const char *help;
};

/* Row i of the table; false beyond its end. */
bool zc_args_row(size_t i, struct zc_args_row *ret_row);

#endif
