/* load PEER ADDRESS WORK [NAME=VALUE ...] [-- PROGRAM ARG ...] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "load.h"

struct options options = {.steps = "put", .queue = QUEUE, .count = 1000, .conns = 1, .pipeline = 1};
const char *payload;
size_t payload_len = 100;

static const struct {
    const char *name;
    void (*run)(void);
    const char *help;
} works[] = {
    {"cycle", work_cycle, "each connection goes through steps, over and over"},
    {"wake", work_wake, "a waiting take and a put; latency between them"},
    {"publish", work_publish, "count publications to conns subscribers; operations are deliveries"},
    {"ask", work_ask, "requests and replies, one after the other"},
    {"idle", work_idle, "opens conns connections, says ready, ends with standard input"},
    {"probe", work_probe, "puts (what is measured) and takes in turn until standard input ends"},
    {"start", work_start, "starts the program and waits until it answers; ends it"},
    {"control", work_control, "appends and fdatasync on a file of zeros at ADDRESS"},
};

static const struct peer *const peers[] = {&peer_zmqcat, &peer_beanstalkd, &peer_redis,
                                           &peer_mosquitto, &peer_nats};

static void usage(void)
{
    fprintf(stderr, "usage: load PEER ADDRESS WORK [NAME=VALUE ...] [-- PROGRAM ARG ...]\n"
                    "ADDRESS: path of a unix socket, or a port of 127.0.0.1\n"
                    "NAME: count, conns, pipeline (requests on their way), payload (bytes),\n"
                    "      steps (of put, take, reserve, ack, ping, pub), queue (of our hub)\n"
                    "PEER:");
    for (size_t i = 0; i < sizeof(peers) / sizeof(*peers); i++)
        fprintf(stderr, " %s", peers[i]->name);
    fprintf(stderr, "\nWORK:\n");
    for (size_t i = 0; i < sizeof(works) / sizeof(*works); i++)
        fprintf(stderr, "  %-8s %s\n", works[i].name, works[i].help);
    exit(2);
}

static void set(const char *assignment)
{
    const struct {
        const char *name;
        long *value;
    } numbers[] = {{"count=", &options.count},
                   {"conns=", &options.conns},
                   {"pipeline=", &options.pipeline},
                   {"payload=", (long *)&payload_len}};
    const struct {
        const char *name;
        const char **value;
    } words[] = {{"steps=", &options.steps}, {"queue=", &options.queue}};
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        size_t len = strlen(words[i].name);
        if (strncmp(assignment, words[i].name, len) == 0) {
            *words[i].value = assignment + len;
            return;
        }
    }
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
        size_t len = strlen(numbers[i].name);
        char *end;
        if (strncmp(assignment, numbers[i].name, len) != 0)
            continue;
        *numbers[i].value = strtol(assignment + len, &end, 10);
        if (*end != '\0' || *numbers[i].value < 1)
            usage();
        return;
    }
    usage();
}

/* So many before the first comes again; none is part of another. */
#define PAYLOADS 512

static char *payloads;

static void fill_payloads(void)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-";
    uint64_t random = 88172645463325252u;
    if (payload_len > PAYLOAD_MAX)
        fail("payload: at most %d", PAYLOAD_MAX);
    payloads = calloc(PAYLOADS, payload_len + 1);
    if (payloads == NULL)
        fail("out of memory");
    for (size_t i = 0; i < PAYLOADS * (payload_len + 1); i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        payloads[i] = i % (payload_len + 1) == payload_len ? '\0' : letters[random >> 58];
    }
    payload = payloads;
}

void payload_next(void)
{
    payload += payload_len + 1;
    if (payload == payloads + PAYLOADS * (payload_len + 1))
        payload = payloads;
}

static void raise_files(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return;
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
}

int main(int argc, char **argv)
{
    if (argc < 4)
        usage();
    for (size_t i = 0; i < sizeof(peers) / sizeof(*peers); i++)
        if (strcmp(argv[1], peers[i]->name) == 0)
            options.peer = peers[i];
    if (options.peer == NULL && strcmp(argv[1], "none") != 0)
        usage();
    options.address = argv[2];
    for (int i = 4; i < argc; i++) {
        if (strcmp(argv[i], "--") == 0) {
            options.argv = argv + i + 1;
            break;
        }
        set(argv[i]);
    }
    fill_payloads();
    raise_files();
    for (size_t i = 0; i < sizeof(works) / sizeof(*works); i++) {
        if (strcmp(argv[3], works[i].name) == 0) {
            works[i].run();
            return 0;
        }
    }
    usage();
}
