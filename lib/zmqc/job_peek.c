/* What a peek shows: the next messages of a mailbox, in order, and nothing changes; see job.h. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "zmqc/job.h"
#include "zmqc/message.h"
#include "zmqc/reply.h"
#include "zmqc/rest.h"
#include "zmqc/walk.h"

static void look_at(struct zc_job *j, const struct zc_message *m)
{
    struct zc_job_look *look = &j->looks[j->looks_len++];
    *look = (struct zc_job_look){
        .place = m->place, .seq = m->seq, .body_len = m->body_len, .attempt = m->attempt};
    if (m->body != NULL)
        look->body = zc_block_ref(m->body);
}

/* False: no memory. */
static bool look_at_row(struct zc_job *j, const struct zc_row *row)
{
    struct zc_job_look *look = &j->looks[j->looks_len];
    *look = (struct zc_job_look){.seq = zc_row_seq(row), .body_len = row->body_len};
    if (!zc_row_chunk(row)->packed)
        look->place = row->place;
    else if ((look->body = zc_rest_body(row)) == NULL)
        return false;
    j->looks_len++;
    return true;
}

bool zc_job_peek_collect(struct zc_broker *b, struct zc_job *j)
{
    struct zc_message *found[ZC_MSG_MAX_MAX], *m;
    while ((m = zc_mailbox_peek(j->from)) != NULL && m->expires.ns <= b->now.mono.ns)
        zc_message_expire(b, m); /* else one that is over could hide one that is not */
    uint32_t n = zc_walk_collect(j->from, j->limit, false, found, (uint32_t)j->left);
    const struct zc_rows *rows = &j->from->rows;
    const struct zc_row *row = zc_rows_from(rows, 0);
    uint64_t most = n + rows->count < j->left ? n + rows->count : j->left;
    j->looks = calloc(most + 1, sizeof(*j->looks));
    if (j->looks == NULL)
        return false;
    for (uint32_t i = 0; j->looks_len < most && (i < n || row != NULL);) {
        if (row != NULL && (i == n || zc_row_seq(row) < found[i]->seq)) {
            if (!look_at_row(j, row))
                return false;
            row = zc_rows_next(rows, row);
            continue;
        }
        m = found[i++];
        if (m->expires.ns > b->now.mono.ns)
            look_at(j, m);
    }
    j->session->cost += j->looks_len;
    return true;
}

static void show(struct zc_broker *b, struct zc_job *j, bool last)
{
    struct zc_msg *out = &b->out;
    struct zc_item item;
    int err = zc_item_decode(zc_block_slice(j->shown), &item);
    ZC_ASSERT(err == 0); /* checked when it was stored, or just now */
    zc_msg_clear(out);
    out->op = zc_slice_str("msg");
    out->id = j->id_len > 0 ? zc_slice(j->id, j->id_len) : item.id;
    out->name = item.name;
    out->from = item.from;
    out->by = item.by;
    out->headers_count = item.headers_count;
    out->headers_bytes = zc_item_headers(&item, out->headers);
    out->has = ZC_MSG_HAS_AT | (j->shown_attempt > 0 ? ZC_MSG_HAS_ATTEMPT : 0);
    out->attempt = j->shown_attempt;
    out->at = item.at_ms;
    out->peek = true;
    out->end = last && j->with_max;
    zc_msg_set_payload(out, item.payload);
    zc_reply_send(b, j->session, out, 0);
    j->count++;
    zc_block_unref(j->shown);
    j->shown = NULL;
}

/* The message of a look, if it is still there. */
static struct zc_message *find(const struct zc_mailbox *mb, uint64_t seq)
{
    for (const struct zc_list *l = mb->queue.next; l != &mb->queue; l = l->next) {
        struct zc_message *m = ZC_CONTAINER(l, struct zc_message, link);
        if (m->seq == seq)
            return m;
    }
    for (uint32_t i = 0; i < mb->returned.len; i++) {
        struct zc_message *m = ZC_CONTAINER(mb->returned.nodes[i], struct zc_message, order);
        if (m->seq == seq)
            return m;
    }
    return NULL;
}

/* The read of a look failed: its record may have moved since the peek came. */
static bool look_again(struct zc_broker *b, struct zc_job *j, struct zc_job_look *look)
{
    struct zc_row *row = zc_rows_from(&j->from->rows, look->seq);
    if (row != NULL && zc_row_seq(row) == look->seq) {
        bool moved = row->place != look->place;
        look->place = row->place;
        return moved && zc_job_read(b, j, row->place, row->body_len);
    }
    struct zc_message *m = find(j->from, look->seq);
    j->session->cost += j->from->queued / 16;
    if (m == NULL || m->place == look->place)
        return false;
    look->place = m->place;
    if (m->body == NULL)
        return zc_job_read(b, j, m->place, m->body_len);
    j->body = zc_block_ref(m->body);
    return false;
}

/* The body of the next look, or NULL: it is being read (*ret_wait), or is no more. */
static struct zc_block *next_body(struct zc_broker *b, struct zc_job *j, bool *ret_wait)
{
    struct zc_job_look *look = &j->looks[j->next];
    struct zc_block *body = look->body != NULL ? look->body : j->body;
    struct zc_item item;
    *ret_wait = false;
    if (body == NULL && look->body_len > 0) {
        *ret_wait = zc_job_read(b, j, look->place, look->body_len);
        look->body_len = 0; /* once */
        if (*ret_wait)
            return NULL;
    } else if (body == NULL) {
        *ret_wait = look_again(b, j, look);
        if (*ret_wait)
            return NULL;
        body = j->body;
    }
    if (look->body != NULL)
        look->body = NULL;
    else
        j->body = NULL;
    if (body != NULL && zc_item_decode(zc_block_slice(body), &item) == 0)
        return body;
    zc_block_unref(body);
    return NULL;
}

bool zc_job_peek_step(struct zc_broker *b, struct zc_job *j)
{
    for (; j->next < j->looks_len; j->next++) {
        bool wait;
        if (zc_reply_over_bound(b, j->session))
            return false; /* until it has read some */
        struct zc_block *body = next_body(b, j, &wait);
        if (wait)
            return false;
        if (body == NULL)
            continue;
        if (j->shown != NULL)
            show(b, j, false);
        j->shown = body;
        j->shown_attempt = j->looks[j->next].attempt;
    }
    if (j->shown != NULL)
        show(b, j, true);
    if (j->count == 0)
        zc_reply_err(b, j->session, zc_slice(j->id, j->id_len), "empty", "mailbox: empty");
    j->stopped = true;
    return true;
}
