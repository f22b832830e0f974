/*
 * The load engine of `make bench`: one thread that does the same work against our hub and against
 * other brokers, each in its own protocol, so that the client costs the same for all of them. What
 * differs between brokers is in a struct peer: how a request is written and how an answer is read.
 *
 * Sockets block. A work with one connection just reads; one with many asks epoll which to read.
 */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOKEN_MAX 64
#define PAYLOAD_MAX 4096
#define QUEUE "bench"
#define TOPIC "bench.topic"
#define SERVICE "bench.service"

struct bytes {
    uint8_t *data;
    size_t len, cap;
};

struct conn {
    int fd;
    unsigned number;       /* unlike that of every other connection */
    uint64_t id;           /* of the last request */
    char token[TOKEN_MAX]; /* what acknowledges the last message */
    char *held;            /* its payload, for those who acknowledge by that */
    struct bytes out;
    struct bytes in; /* received and not yet read: in.data[at .. len) */
    size_t at;
    /* For the work. */
    unsigned step;    /* of the script */
    unsigned awaited; /* answers to come */
    uint64_t sent_ns;
};

enum answer {
    MORE,    /* not all of it is there */
    NOTHING, /* no answer to a request, but maybe something to say to it in c->out: read on */
    OK,
    MESSAGE,
    EMPTY,   /* no message now */
    REFUSED, /* an error */
};

enum operation { PUT, TAKE, RESERVE, ACK, PING, WAIT, SUB, PUB, SERVE, REQ, REP, OPERATIONS };

struct peer {
    const char *name;
    /* Writes a request into c->out; NULL where the peer has none like it. */
    void (*request[OPERATIONS])(struct conn *c);
    /* Reads one answer from len bytes; ret_used: how many it takes. */
    enum answer (*answer)(struct conn *c, const uint8_t *data, size_t len, size_t *ret_used);
    /* Says hello and reads the answer, or NULL. */
    void (*greet)(struct conn *c);
    /* A request that comes before it knows of the worker is lost, so SERVE is answered. */
    bool serve_answered;
};

extern const struct peer peer_zmqcat, peer_beanstalkd, peer_redis, peer_mosquitto, peer_nats;

/* What the command line says. */
struct options {
    const struct peer *peer;
    const char *address; /* of a unix socket, or PORT of 127.0.0.1 */
    const char *steps;
    const char *queue; /* of our hub; the others have QUEUE */
    long count;        /* operations in all */
    long conns;        /* connections */
    long pipeline;     /* requests on their way on each */
    char *const *argv; /* a program to start */
};

extern struct options options;
/* Text without characters that need an escape; another one for each request, because brokers that
 * compress what they keep would have an easy time with copies. */
extern const char *payload;
extern size_t payload_len;

void payload_next(void);

/* conn.c */
void conn_open(struct conn *c);
bool conn_try(struct conn *c); /* false: nobody listens */
void conn_close(struct conn *c);
void conn_add(struct conn *c, const void *data, size_t len);
__attribute__((format(printf, 2, 3))) void conn_print(struct conn *c, const char *format, ...);
void conn_request(struct conn *c, enum operation op);
void conn_send(struct conn *c);
/* Waits for bytes, once. False: the other side has closed. */
bool conn_receive(struct conn *c);
/* The next answer among the bytes that are there; MORE: none. */
enum answer conn_next(struct conn *c);
/* Sends what was added and waits for an answer; ends the program when it is an error. */
enum answer conn_wait(struct conn *c);
enum answer conn_call(struct conn *c, enum operation op);
/* Connections of one work, all open and watched. */
struct conn *conns_open(long count);
void conns_close(struct conn *conns, long count);
/* Waits until some have bytes; they are in ret_ready. */
size_t conns_wait(struct conn **ret_ready, size_t cap);
#define CONNS_READY 256
/* Answers heartbeats on all of them until standard input ends. */
void conns_idle(void);

/* result.c */
uint64_t now_ns(void);
__attribute__((noreturn, format(printf, 1, 2))) void fail(const char *format, ...);
void latency_start(long count_max);
void latency_add(uint64_t ns);
/* One line of JSON: operations, seconds and, if any were added, percentiles of latencies. */
void result_print(uint64_t operations, uint64_t took_ns);

/* Works. */
void work_cycle(void);
void work_wake(void);
void work_publish(void);
void work_ask(void);
void work_idle(void);
void work_probe(void);
void work_start(void);
void work_control(void);

#endif
