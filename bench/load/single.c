/* Works of one or two connections, where one thing follows another. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "load.h"

/* What a waiter is given to be truly waiting, and the broker to be asleep. */
#define SETTLE_US 300
#define RECORD_BYTES 128

static void until_message(struct conn *c)
{
    while (conn_wait(c) != MESSAGE)
        continue;
}

void work_wake(void)
{
    struct conn waiter, putter;
    const struct peer *p = options.peer;
    conn_open(&waiter);
    conn_open(&putter);
    latency_start(options.count);
    uint64_t start = now_ns();
    for (long i = 0; i < options.count; i++) {
        waiter.awaited = 1;
        conn_request(&waiter, WAIT);
        conn_send(&waiter);
        usleep(SETTLE_US);
        uint64_t put_ns = now_ns();
        conn_request(&putter, PUT);
        conn_send(&putter);
        until_message(&waiter);
        latency_add(now_ns() - put_ns);
        conn_wait(&putter);
        if (p->request[WAIT] == p->request[RESERVE])
            conn_call(&waiter, ACK);
    }
    result_print((uint64_t)options.count, now_ns() - start);
    conn_close(&waiter);
    conn_close(&putter);
}

void work_ask(void)
{
    struct conn asker, worker;
    conn_open(&asker);
    conn_open(&worker);
    worker.awaited = 1;
    conn_request(&worker, SERVE);
    conn_send(&worker);
    if (options.peer->serve_answered && conn_wait(&worker) != OK)
        fail("%s: a request before the first was made", options.peer->name);
    usleep(10000);
    latency_start(options.count);
    uint64_t start = now_ns();
    for (long i = 0; i < options.count; i++) {
        uint64_t sent_ns = now_ns();
        conn_request(&asker, REQ);
        conn_send(&asker);
        until_message(&worker);
        conn_request(&worker, REP);
        conn_send(&worker);
        until_message(&asker);
        latency_add(now_ns() - sent_ns);
    }
    result_print((uint64_t)options.count, now_ns() - start);
    conn_close(&asker);
    conn_close(&worker);
}

/* So many that no measurement has more; what a latency costs is 4 bytes. */
#define PROBES_MAX 4000000

void work_probe(void)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    struct conn c;
    long puts_done = 0;
    conn_open(&c);
    latency_start(PROBES_MAX);
    uint64_t start = now_ns();
    do {
        uint64_t from_ns = now_ns();
        conn_call(&c, PUT);
        latency_add(now_ns() - from_ns);
        puts_done++;
        while (conn_call(&c, TAKE) != MESSAGE)
            continue;
    } while (puts_done < PROBES_MAX && poll(&input, 1, 0) == 0);
    result_print((uint64_t)puts_done, now_ns() - start);
    conn_close(&c);
}

void work_idle(void)
{
    struct conn *conns = conns_open(options.conns);
    for (long i = 0; options.peer->request[PING] != NULL && i < options.conns; i++)
        conn_call(&conns[i], PING);
    puts("ready");
    fflush(stdout);
    conns_idle();
    conns_close(conns, options.conns);
}

/* The least that a broker does which says ok when a message is on disk. */
void work_control(void)
{
    static char zeros[65536];
    char record[RECORD_BYTES];
    size_t size = (size_t)options.count * RECORD_BYTES;
    int fd = open(options.address, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    memset(record, 'x', sizeof(record));
    for (size_t at = 0; fd >= 0 && at < size; at += sizeof(zeros))
        if (write(fd, zeros, sizeof(zeros)) < 0)
            fail("%s: %s", options.address, strerror(errno));
    if (fd < 0 || fsync(fd) < 0)
        fail("%s: %s", options.address, strerror(errno));
    latency_start(options.count);
    uint64_t start = now_ns();
    for (long i = 0; i < options.count; i++) {
        uint64_t from_ns = now_ns();
        if (pwrite(fd, record, sizeof(record), (off_t)i * RECORD_BYTES) < 0 || fdatasync(fd) < 0)
            fail("%s: %s", options.address, strerror(errno));
        latency_add(now_ns() - from_ns);
    }
    result_print((uint64_t)options.count, now_ns() - start);
    close(fd);
}
