/* stat, list and info: what an operator asks, see op.h. */
#include <stddef.h>
#include <stdlib.h>

#include "base/json.h"
#include "zmqc/op.h"
#include "zmqc/reply.h"
#include "zmqc/rest.h"

#define LIST_MAX 1000

static void finish(struct zc_broker *b, struct zc_session *s, const struct zc_msg *m, int err)
{
    if (err == 0)
        err = zc_json_put_raw(&b->scratch, "}");
    if (err != 0)
        zc_broker_kill(b, s, "out of memory: session ended");
    else
        zc_op_result(b, s, m, zc_slice(b->scratch.data, b->scratch.len));
    if (b->scratch.cap > 65536)
        zc_buf_done(&b->scratch);
}

struct numbers {
    uint64_t depth, leased, delayed, waiting, bytes, oldest_ms, in, out, redelivered, dropped;
};

static int put_numbers(struct zc_buf *j, const struct numbers *n)
{
    const struct {
        const char *key;
        uint64_t value;
    } rows[] = {{"depth", n->depth},     {"leased", n->leased}, {"delayed", n->delayed},
                {"waiting", n->waiting}, {"bytes", n->bytes},   {"oldest_ms", n->oldest_ms},
                {"in", n->in},           {"out", n->out},       {"redelivered", n->redelivered},
                {"dropped", n->dropped}};
    int err = 0;
    for (size_t i = 0; err == 0 && i < ZC_ARRAY_LEN(rows); i++)
        err = zc_json_put_member(j, rows[i].key, (int64_t)rows[i].value);
    return err;
}

/* Age of the message that is next, in ms. */
static uint64_t oldest_ms(const struct zc_broker *b, const struct zc_mailbox *mb)
{
    int64_t at_ms = zc_rest_oldest_ms(b, mb);
    return at_ms < b->now.wall.ms ? (uint64_t)(b->now.wall.ms - at_ms) : 0;
}

void zc_op_stat(struct zc_broker *b, struct zc_session *s, struct zc_msg *m)
{
    struct zc_buf *j = &b->scratch;
    j->len = 0;
    int err = zc_json_put_raw(j, "{");
    struct numbers n = {0};
    if (m->name.len > 0) {
        const struct zc_mailbox *mb = zc_broker_mailbox(b, m->name, false, NULL, NULL);
        if (err == 0)
            err = zc_json_put_raw(j, "\"name\":");
        if (err == 0)
            err = zc_json_put_string(j, m->name);
        if (mb != NULL)
            n = (struct numbers){mb->queued,      mb->leased,       mb->delayed, mb->waiting,
                                 mb->bytes,       oldest_ms(b, mb), mb->in,      mb->out,
                                 mb->redelivered, mb->dropped};
        if (err == 0)
            err = put_numbers(j, &n);
    } else {
        const struct zc_counters *c = &b->count;
        n = (struct numbers){c->queued,      c->leased, c->delayed, b->waiters_count,
                             c->bytes,       0,         c->puts,    c->takes + c->leases,
                             c->redelivered, c->dropped};
        s->cost += b->mailboxes.len / 64;
        for (struct zc_list *l = b->mailbox_list.next; l != &b->mailbox_list; l = l->next) {
            uint64_t age = oldest_ms(b, ZC_CONTAINER(l, struct zc_mailbox, link));
            n.oldest_ms = age > n.oldest_ms ? age : n.oldest_ms;
        }
        if (err == 0)
            err = put_numbers(j, &n);
        if (err == 0)
            err = zc_json_put_member(j, "mailboxes", (int64_t)b->mailboxes.len);
    }
    finish(b, s, m, err);
}

/* The `max` lowest names above `after`: a max-heap by name in found[]. */
struct page {
    const struct zc_mailbox *found[LIST_MAX];
    uint32_t len, max;
    bool more;
};

static int compare(const void *a, const void *b)
{
    const struct zc_mailbox *const *x = a, *const *y = b;
    return zc_slice_cmp(zc_mailbox_name(*x), zc_mailbox_name(*y));
}

static void sift_down(struct page *p)
{
    uint32_t i = 0;
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= p->len)
            return;
        if (child + 1 < p->len && compare(&p->found[child + 1], &p->found[child]) > 0)
            child++;
        if (compare(&p->found[child], &p->found[i]) <= 0)
            return;
        const struct zc_mailbox *t = p->found[i];
        p->found[i] = p->found[child];
        p->found[child] = t;
        i = child;
    }
}

static void page_add(struct page *p, const struct zc_mailbox *mb)
{
    if (p->len == p->max) {
        p->more = true;
        if (compare(&mb, &p->found[0]) >= 0)
            return;
        p->found[0] = mb;
        sift_down(p);
        return;
    }
    uint32_t i = p->len++;
    p->found[i] = mb;
    while (i > 0 && compare(&p->found[i], &p->found[(i - 1) / 2]) > 0) {
        const struct zc_mailbox *t = p->found[i];
        p->found[i] = p->found[(i - 1) / 2];
        p->found[(i - 1) / 2] = t;
        i = (i - 1) / 2;
    }
}

/* Names go out up to this many bytes, so that a page fits the envelope with every byte escaped. */
#define LIST_BYTES_MAX 262144

void zc_op_list(struct zc_broker *b, struct zc_session *s, struct zc_msg *m)
{
    struct page p = {.max = LIST_MAX};
    if ((m->has & ZC_MSG_HAS_MAX) != 0 && m->max < LIST_MAX)
        p.max = (uint32_t)m->max;
    s->cost += b->mailboxes.len / 16; /* it looks at all names */
    for (struct zc_list *l = b->mailbox_list.next; l != &b->mailbox_list; l = l->next) {
        const struct zc_mailbox *mb = ZC_CONTAINER(l, struct zc_mailbox, link);
        struct zc_slice name = zc_mailbox_name(mb);
        if (zc_slice_starts(name, m->name) &&
            (m->after.len == 0 || zc_slice_cmp(name, m->after) > 0))
            page_add(&p, mb);
    }
    qsort(p.found, p.len, sizeof(p.found[0]), compare);
    struct zc_buf *j = &b->scratch;
    j->len = 0;
    int err = zc_json_put_raw(j, "{\"names\":[");
    size_t bytes = 0;
    for (uint32_t i = 0; err == 0 && i < p.len; i++) {
        struct zc_slice name = zc_mailbox_name(p.found[i]);
        if ((bytes += name.len) > LIST_BYTES_MAX) {
            p.more = true;
            break;
        }
        if (i > 0)
            err = zc_json_put_raw(j, ",");
        if (err == 0)
            err = zc_json_put_string(j, name);
    }
    if (err == 0)
        err = zc_json_put_raw(j, p.more ? "],\"more\":true" : "],\"more\":false");
    finish(b, s, m, err);
}

static int put_limits(struct zc_buf *j, const struct zc_broker_limits *l)
{
    const struct {
        const char *key;
        uint64_t value;
    } rows[] = {{"max-payload", l->payload_max},
                {"mailbox-cap", l->mailbox_cap},
                {"sub-buffer", l->sub_buffer},
                {"topics-max", l->topics_max},
                {"headers-max", l->headers_max},
                {"headers-bytes", l->headers_bytes},
                {"mailboxes-max", l->mailboxes_max},
                {"sessions-max", l->sessions_max},
                {"session-bytes", l->session_bytes},
                {"heartbeat-ms", l->heartbeat_ms > 0 ? (uint64_t)l->heartbeat_ms : 0}};
    int err = 0;
    for (size_t i = 0; err == 0 && i < ZC_ARRAY_LEN(rows); i++)
        err = zc_json_put_member(j, rows[i].key, (int64_t)rows[i].value);
    return err;
}

void zc_op_info(struct zc_broker *b, struct zc_session *s, struct zc_msg *m)
{
    struct zc_buf *j = &b->scratch;
    j->len = 0;
    int err = zc_json_put_raw(j, "{\"version\":");
    if (err == 0)
        err = zc_json_put_string(j, zc_slice_str(b->version));
    if (err == 0)
        err = zc_json_put_member(j, "uptime",
                                 (int64_t)((b->now.mono.ns - b->started.ns) / ZC_NS_PER_S));
    if (err == 0)
        err =
            zc_json_put_raw(j, ",\"features\":[\"headers\",\"delay\",\"ttl\",\"wait\",\"max\","
                               "\"deliveries\",\"touch\",\"subs\",\"epoch\",\"stat\",\"list\","
                               "\"if\",\"filter\",\"peek\",\"purge\",\"move\",\"bind\",\"scope\"");
    if (err == 0)
        err = zc_json_put_raw(j,
                              b->journal != NULL ? ",\"durable\"],\"limits\":{" : "],\"limits\":{");
    if (err == 0)
        err = put_limits(j, &b->limits);
    if (err == 0)
        err = zc_json_put_raw(j, "},\"identity\":");
    if (err == 0)
        err = zc_json_put_string(j, zc_slice_str(s->identity));
    finish(b, s, m, err);
}
