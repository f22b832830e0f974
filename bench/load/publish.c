/*
 * Publications to many subscribers. At most `pipeline` publications are on their way, so buffers as
 * large as that lose none; a delivery that is lost all the same ends the work as an error, because
 * every subscriber is waited for until it has all of them.
 */
#include <stdlib.h>

#include "load.h"

static struct conn *conns; /* the first one publishes */
static long published;
static uint64_t delivered;

static void subscribe(void)
{
    for (long i = 1; i <= options.conns; i++)
        if (conn_call(&conns[i], SUB) != OK)
            fail("%s: a message before the first publication", options.peer->name);
}

/* Half a window at a time, in one write. */
static void publish(void)
{
    uint64_t subs = (uint64_t)options.conns;
    long half = options.pipeline > 1 ? options.pipeline / 2 : 1;
    while (published < options.count &&
           ((uint64_t)(published + half) * subs <= delivered + (uint64_t)options.pipeline * subs)) {
        long batch = half < options.count - published ? half : options.count - published;
        for (long i = 0; i < batch; i++)
            conn_request(&conns[0], PUB);
        published += batch;
        conn_send(&conns[0]);
    }
}

static void take_in(struct conn *c)
{
    enum answer a;
    if (!conn_receive(c))
        fail("%s has closed the connection", options.peer->name);
    while ((a = conn_next(c)) != MORE) {
        if (a != MESSAGE)
            continue;
        delivered++;
        if (++c->id > (uint64_t)options.count + 1)
            fail("%s: a subscriber got more than was published", options.peer->name);
    }
}

void work_publish(void)
{
    struct conn *ready[CONNS_READY];
    uint64_t wanted = (uint64_t)options.count * (uint64_t)options.conns;
    conns = conns_open(options.conns + 1);
    subscribe();
    uint64_t start = now_ns();
    while (delivered < wanted) {
        publish();
        size_t n = conns_wait(ready, CONNS_READY);
        for (size_t i = 0; i < n; i++)
            take_in(ready[i]);
    }
    result_print(wanted, now_ns() - start);
    conns_close(conns, options.conns + 1);
}
