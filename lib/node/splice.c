/* A local stream tied to a connection of the tunnel; see splice.h and spoke.h. */
#include "node/splice.h"

#include <stddef.h>
#include <stdlib.h>

#include "base/check.h"
#include "node/hub_tunnel.h"

/* Bytes kept for a connection that is not open yet. */
#define HELD_BYTES 65536

static struct zc_tcpmux *mux(const struct zc_splice *s)
{
    return zc_tunnel_mux(s->net->t);
}

static void tell(struct zc_splice *s)
{
    if (!zc_list_linked(&s->told) && !s->close_told)
        zc_list_push(&s->net->splices_told, &s->told);
}

static void tell_output(struct zc_splice *s)
{
    s->output_due = true;
    tell(s);
}

struct zc_splice *zc_splice_new(struct zc_hub_tunnel *net, uint16_t port, void *data)
{
    struct zc_splice *s = calloc(1, sizeof(*s));
    if (s == NULL)
        return NULL;
    s->end = ZC_HUB_END_SPLICE;
    s->net = net;
    s->serial = ++net->splice_serial;
    s->port = port;
    s->data = data;
    zc_list_push(&net->splices, &s->all);
    net->splices_count++;
    return s;
}

/* Open, or over. */
static void unhold(struct zc_splice *s)
{
    s->net->opening -= s->opening;
    s->opening = false;
    zc_list_remove(&s->waiting);
    zc_list_remove(&s->held);
}

void zc_splice_free(struct zc_splice *s)
{
    zc_list_remove(&s->all);
    zc_list_remove(&s->told);
    unhold(s);
    s->net->splices_count--;
    zc_buf_done(&s->pending);
    zc_buf_done(&s->last);
    free(s);
}

/* Out of memory, or the connection failed: the local side gets a reset. */
static void fail(struct zc_splice *s)
{
    s->ended = s->reset = true;
    tell(s);
}

/* Local bytes, and the end after them, into the connection. */
static void push(struct zc_splice *s, struct zc_now now)
{
    if (s->conn == NULL || s->ended)
        return;
    if (s->pending.len > 0) {
        size_t n = zc_tcpmux_write(mux(s), now, s->conn, zc_slice(s->pending.data, s->pending.len));
        zc_buf_consume(&s->pending, n);
        if (s->pending.len > 0)
            return;
        zc_buf_done(&s->pending);
        tell_output(s);
    }
    if (s->local_eof)
        zc_tcpmux_shutdown(mux(s), now, s->conn);
}

void zc_splice_take(struct zc_splice *s, struct zc_now now, struct zc_tcpmux_conn *conn)
{
    s->conn = conn;
    zc_tcpmux_set_owner(conn, s);
    push(s, now);
    tell(s);
}

void zc_splice_set_data(struct zc_splice *s, void *data)
{
    s->data = data;
}

void zc_splice_input(struct zc_splice *s, struct zc_now now, const uint8_t *data, size_t len)
{
    size_t n = 0;
    if (s->ended || s->local_eof)
        return;
    s->in += len;
    if (s->conn != NULL && s->pending.len == 0)
        n = zc_tcpmux_write(mux(s), now, s->conn, zc_slice(data, len));
    if (n < len && zc_buf_append(&s->pending, data + n, len - n) != 0)
        fail(s);
}

void zc_splice_eof(struct zc_splice *s, struct zc_now now)
{
    s->local_eof = true;
    push(s, now);
    tell(s);
}

bool zc_splice_wants_input(const struct zc_splice *s)
{
    if (s->ended || s->local_eof)
        return false;
    return s->conn != NULL ? s->pending.len == 0 : s->pending.len < HELD_BYTES;
}

size_t zc_splice_output(const struct zc_splice *s, struct zc_slice ret_slices[ZC_SPLICE_SLICES])
{
    size_t n = s->conn != NULL && !s->reset ? zc_tcpmux_readable(s->conn, ret_slices) : 0;
    if (s->last.len > s->last_sent)
        ret_slices[n++] = zc_slice(s->last.data + s->last_sent, s->last.len - s->last_sent);
    return n;
}

void zc_splice_sent(struct zc_splice *s, struct zc_now now, size_t n)
{
    struct zc_slice slices[2];
    size_t count = s->conn != NULL ? zc_tcpmux_readable(s->conn, slices) : 0, there = 0;
    for (size_t i = 0; i < count; i++)
        there += slices[i].len;
    if (there > n)
        there = n;
    if (there > 0)
        zc_tcpmux_consume(mux(s), now, s->conn, there);
    s->last_sent += n - there;
    s->out += n;
    tell(s);
}

static void drop_conn(struct zc_splice *s, struct zc_now now, bool abort)
{
    if (s->conn == NULL)
        return;
    if (abort)
        zc_tcpmux_abort(mux(s), now, s->conn);
    zc_tcpmux_release(mux(s), now, s->conn);
    s->conn = NULL;
}

void zc_splice_detach(struct zc_splice *s, struct zc_now now, bool reset)
{
    zc_hub_trace(s->net, "zmqcat c%llu close in=%llu out=%llu%s", (unsigned long long)s->serial,
                 (unsigned long long)s->in, (unsigned long long)s->out,
                 reset || s->reset ? " reset" : "");
    drop_conn(s, now, reset);
    zc_splice_free(s);
}

void zc_splice_end(struct zc_splice *s, struct zc_now now, struct zc_slice last)
{
    drop_conn(s, now, true);
    if (s->ended)
        return;
    s->ended = true;
    s->reset = last.len == 0 || zc_buf_append(&s->last, last.data, last.len) != 0;
    unhold(s);
    tell_output(s);
}

void zc_splice_conn_event(struct zc_splice *s, struct zc_now now, const struct zc_tcpmux_event *ev)
{
    switch (ev->kind) {
    case ZC_TCPMUX_CONNECTED:
        s->opened = true;
        unhold(s);
        tell_output(s);
        break;
    case ZC_TCPMUX_READABLE:
        tell_output(s);
        break;
    case ZC_TCPMUX_WRITABLE:
        push(s, now);
        break;
    case ZC_TCPMUX_PEER_FIN:
        s->peer_fin = true;
        tell_output(s);
        break;
    case ZC_TCPMUX_CLOSED:
        if (s->net->spoke && ev->reason == ZC_TCP_RESET)
            zc_tunnel_ask(s->net->t, now); /* is it the service, or does the hub not know us? */
        if (!s->opened)
            zc_spoke_refused(s, now, ev->reason);
        else if (ev->reason != ZC_TCP_DONE)
            fail(s);
        break;
    default:
        break;
    }
}

/* Nothing is left to be written to the local side. */
static bool drained(const struct zc_splice *s)
{
    struct zc_slice slices[ZC_SPLICE_SLICES];
    return zc_splice_output(s, slices) == 0;
}

static bool is_over(const struct zc_splice *s)
{
    if (s->ended)
        return s->reset || drained(s);
    return s->peer_fin && s->local_eof && s->pending.len == 0 && drained(s);
}

/* One event of s; false: none. */
static bool next_event(struct zc_splice *s, struct zc_hub_event *ev)
{
    *ev = (struct zc_hub_event){.splice = s, .data = s->data, .text = "", .port = s->port};
    if (s->open_due) {
        s->open_due = false;
        ev->kind = ZC_HUB_SPLICE_OPEN;
    } else if (is_over(s)) {
        s->close_told = true;
        ev->kind = ZC_HUB_SPLICE_CLOSE;
        ev->reset = s->reset;
    } else if (s->output_due) {
        s->output_due = false;
        ev->kind = ZC_HUB_SPLICE_OUTPUT;
    } else if (s->peer_fin && !s->eof_told && drained(s)) {
        s->eof_told = true;
        ev->kind = ZC_HUB_SPLICE_EOF;
    } else {
        return false;
    }
    return true;
}

bool zc_splice_event(struct zc_hub_tunnel *net, struct zc_hub_event *ret_event)
{
    struct zc_list *l;
    while ((l = zc_list_first(&net->splices_told)) != NULL) {
        struct zc_splice *s = ZC_CONTAINER(l, struct zc_splice, told);
        if (!s->close_told && next_event(s, ret_event))
            return true;
        zc_list_remove(l);
    }
    return false;
}
