/*
 * A connection between a simulated client and the hub: a stream each way, cut anywhere, a kernel
 * buffer that fills when the client does not read, resets and half-closes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "model.h"
#include "world.h"

static size_t kernel_cap(struct world *w)
{
    static const size_t sizes[] = {1 << 20, 1 << 20, 1 << 18, 16384, 2048, 300};
    return sizes[rnd_below(&w->rnd, ZC_ARRAY_LEN(sizes))];
}

struct conn *conn_open(struct world *w, int client)
{
    char identity[32];
    struct zc_peer peer = {.identity = identity, .name = "@"};
    struct conn *c;
    if (w->conns_len >= (w->calm ? CONNS_MAX : CONNS_MAX - 16))
        return NULL;
    c = calloc(1, sizeof *c);
    ZC_ASSERT(c != NULL);
    snprintf(identity, sizeof identity, "sim:%d", client);
    c->client = client;
    c->number = w->conns_len;
    c->kernel_cap = kernel_cap(w);
    c->never_reads = !w->calm && rnd_ppm(&w->rnd, w->p.never_reads_ppm);
    c->deaf = !w->calm && rnd_ppm(&w->rnd, w->p.deaf_ppm);
    c->progress_at = c->heard_at = world_ns(w);
    c->next_act_at = world_ns(w) + rnd_range(&w->rnd, 0, 2 * w->p.pace_ns);
    c->next_in_at = c->next_read_at = world_ns(w);
    if (w->live_len >= w->p.hub.sessions_max)
        c->cause |= CAUSE_CROWD;
    c->session = zc_hub_attach(w->hub, w->now, &peer, c);
    if (c->session == NULL) {
        world_fail(w, "attach gave no session");
        free(c);
        return NULL;
    }
    w->conns[w->conns_len++] = c;
    w->live[w->live_len++] = c->number;
    c->reading = zc_hub_wants_input(w->hub, c->session);
    world_trace(w, "c%u attach, client %d, kernel %zu%s%s", c->number, client, c->kernel_cap,
                c->never_reads ? ", never reads" : "", c->deaf ? ", deaf" : "");
    return c;
}

static size_t cut(struct world *w, size_t most)
{
    if (w->calm || rnd_one_in(&w->rnd, 2))
        return most;
    return 1 + rnd_below(&w->rnd, rnd_one_in(&w->rnd, 3) && most > 16 ? 16 : most);
}

void conn_give(struct world *w, struct conn *c)
{
    size_t n = c->in.len;
    uint8_t *data;
    if (n > 0 && c->reading && !c->given_up) {
        n = cut(w, n > 65536 ? 65536 : n);
        data = malloc(n);
        ZC_ASSERT(data != NULL);
        memcpy(data, c->in.data, n);
        zc_buf_consume(&c->in, n);
        c->given += n;
        model_submit_until(w, c, c->given);
        zc_hub_input(w->hub, c->session, w->now, data, n);
        free(data);
        c->reading = zc_hub_wants_input(w->hub, c->session);
    }
    if (c->in.len == 0 && c->eof_soon && !c->eof_done && !c->given_up) {
        c->eof_done = true;
        c->cause |= CAUSE_EOF;
        world_trace(w, "c%u half-close", c->number);
        zc_hub_eof(w->hub, c->session, w->now);
    }
    c->next_in_at = world_ns(w) + (w->calm ? 0 : rnd_range(&w->rnd, 0, 3 * MS));
}

/* Whole frames in c->out go to the model. */
static void frames_out(struct world *w, struct conn *c)
{
    size_t at = 0, size;
    while (!w->failed && at < c->out.len) {
        enum zc_frame_status st = zc_frame_peek(c->out.data + at, c->out.len - at, &size);
        if (st == ZC_FRAME_PARTIAL)
            break;
        if (st != ZC_FRAME_WHOLE) {
            world_fail(w, "c%u: the hub sent bytes that are no frame", c->number);
            return;
        }
        model_frame(w, c, c->out.data + at + ZC_FRAME_HEADER, size - ZC_FRAME_HEADER);
        at += size;
    }
    zc_buf_consume(&c->out, at);
}

/* The kernel takes up to `most` bytes of the slices. */
static void accept_bytes(struct world *w, struct conn *c, const struct zc_slice *slices, size_t n,
                         size_t most)
{
    size_t left = most;
    for (size_t i = 0; i < n && left > 0; i++) {
        size_t len = slices[i].len < left ? slices[i].len : left;
        int err = zc_buf_append(&c->out, slices[i].data, len);
        ZC_ASSERT(err == 0);
        world_hash(w, slices[i].data, len);
        left -= len;
    }
    c->kernel += most;
    c->progress_at = world_ns(w);
    c->cause &= ~(uint32_t)(CAUSE_STALLED | CAUSE_OUTPUT);
    zc_hub_sent(w->hub, c->session, w->now, most);
    frames_out(w, c);
}

void conn_flush(struct world *w, struct conn *c)
{
    struct zc_slice slices[8];
    for (int round = 0; !c->given_up && !w->failed; round++) {
        size_t n = 0, sum = 0, room = c->kernel_cap - c->kernel;
        zc_hub_output(w->hub, c->session, slices, 1 + rnd_below(&w->rnd, 8), &n);
        for (size_t i = 0; i < n && i < ZC_ARRAY_LEN(slices); i++)
            sum += slices[i].len;
        c->flagged = false;
        c->blocked = n > 0;
        if (n == 0)
            return;
        if (sum == 0 || n > ZC_ARRAY_LEN(slices) || round > 100000) {
            world_fail(w, "c%u: output of %zu slices, %zu bytes, round %d", c->number, n, sum,
                       round);
            return;
        }
        if (room == 0) {
            c->blocked_at = world_ns(w);
            return;
        }
        accept_bytes(w, c, slices, n, cut(w, sum < room ? sum : room));
    }
}

void conn_read(struct world *w, struct conn *c)
{
    if (c->kernel > 0 && !c->never_reads)
        c->kernel -= cut(w, c->kernel);
    c->next_read_at = world_ns(w) + (w->calm ? 0 : rnd_range(&w->rnd, 0, 4 * MS));
    if (c->blocked) {
        c->blocked_at = world_ns(w);
        conn_flush(w, c);
    }
}

void conn_note_causes(struct world *w, struct conn *c)
{
    int64_t beat = w->p.hub.heartbeat_ms;
    if (beat > 0 && world_ns(w) - c->heard_at >= (3 * beat + 900) * MS)
        c->cause |= CAUSE_SILENT;
    if (c->blocked && world_ns(w) - c->progress_at >= 14900 * MS)
        c->cause |= CAUSE_STALLED;
    if (w->p.hub.output_bytes != 0 && (c->blocked || c->flagged))
        c->cause |= CAUSE_OUTPUT;
    if (w->state == HUB_STOPPING)
        c->cause |= CAUSE_STOP;
}

void conn_end(struct world *w, struct conn *c)
{
    if (c->session == NULL)
        return;
    c->given_up = true;
    model_session_over(w, c);
    if (w->hub != NULL && w->state != HUB_DOWN)
        zc_hub_detach(w->hub, c->session, w->now);
    c->session = NULL;
    for (size_t i = 0; i < w->live_len; i++)
        if (w->live[i] == c->number)
            w->live[i] = w->live[--w->live_len];
    if (c->client < CLIENTS_MAX && w->clients[c->client].conn == c->number + 1)
        w->clients[c->client].conn = 0;
    zc_buf_done(&c->in);
    zc_buf_done(&c->out);
}

void conn_free(struct conn *c)
{
    zc_buf_done(&c->in);
    zc_buf_done(&c->out);
    free(c->wants.list);
    free(c->plans.list);
    free(c->expected);
    free(c);
}
