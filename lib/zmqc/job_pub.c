/* The steps of a publication into bound mailboxes, see job.h. */
#include <stddef.h>

#include "zmqc/gift.h"
#include "zmqc/job.h"
#include "zmqc/reply.h"

static struct zc_job *first(const struct zc_broker *b)
{
    struct zc_list *l = zc_list_first(&b->pubs);
    return l != NULL ? ZC_CONTAINER(l, struct zc_job, in_pubs) : NULL;
}

/* One step of the walk. True: that was all, or *ret_err is a negative zc_err. *ret_ticket covers
 * what was journaled. */
static bool spread(struct zc_broker *b, const struct zc_pub *pub, struct zc_binding_walk *w,
                   uint64_t *ret_ticket, int *ret_err)
{
    uint64_t bytes = 0;
    uint32_t from = w->looked;
    while (bytes < ZC_JOB_STEP_BYTES && w->looked - from < ZC_JOB_STEP) {
        struct zc_bound *bound = zc_binding_next(b, w);
        if (bound == NULL)
            return true;
        size_t made = 0;
        int64_t ticket = zc_op_put_bound(b, pub, zc_binding_name(bound), &made);
        if (ticket < 0) {
            *ret_err = (int)ticket;
            return true;
        }
        if (ticket > 0)
            *ret_ticket = (uint64_t)ticket;
        bytes += made;
    }
    return false;
}

/* A job that goes on with *w, or whose turn is still to come. */
static int enqueue(struct zc_broker *b, struct zc_session *s, const struct zc_pub *pub,
                   const struct zc_binding_walk *w, uint64_t ticket)
{
    struct zc_block *body = zc_item_encode(&pub->item, pub->headers, pub->headers_count);
    if (body == NULL)
        return ZC_ENOMEM;
    bool room = b->in_bytes + body->len <= ZC_BROKER_IN_MAX / 2; /* the rest is for frames */
    struct zc_job *j = room ? zc_job_new(s, ZC_JOB_PUB, pub->item.id) : NULL;
    if (j == NULL) {
        zc_block_unref(body);
        return ZC_ENOMEM;
    }
    struct zc_item item;
    int err = zc_item_decode(zc_block_slice(body), &item);
    ZC_ASSERT(err == 0); /* we made it */
    b->in_bytes += body->len;
    j->body = body;
    j->walk = *w;
    j->walk.topic = item.name;
    j->expires = pub->expires;
    j->ticket = ticket;
    j->begun = j->split = zc_list_empty(&b->pubs);
    zc_list_push(&b->pubs, &j->in_pubs);
    s->publishing = true;
    zc_gift_park(s);
    if (j->begun) {
        b->walk = &j->walk;
        zc_job_make_ready(b, j);
    }
    return 0;
}

void zc_job_pub_start(struct zc_broker *b, struct zc_session *s, const struct zc_pub *pub)
{
    struct zc_binding_walk w;
    uint64_t ticket = 0;
    int err = 0;
    if (!zc_binding_begin(b, pub->item.name, &w) ||
        (zc_list_empty(&b->pubs) && spread(b, pub, &w, &ticket, &err))) {
        s->cost += w.looked;
        zc_op_published(b, s, pub, ticket, err);
        return;
    }
    bool begun = zc_list_empty(&b->pubs);
    s->cost += w.looked;
    err = enqueue(b, s, pub, &w, ticket);
    if (err != 0 && begun)
        zc_op_published(b, s, pub, 0, err);
    else if (err != 0)
        zc_reply_err(b, s, pub->item.id, "unavailable",
                     "too many publications wait for the mailboxes bound to them: try again later");
}

/* What j publishes; headers into b->out. */
static void pub_of(struct zc_broker *b, const struct zc_job *j, struct zc_pub *ret_pub)
{
    int err = zc_item_decode(zc_block_slice(j->body), &ret_pub->item);
    ZC_ASSERT(err == 0); /* we made it */
    ret_pub->headers = b->out.headers;
    ret_pub->headers_count = ret_pub->item.headers_count;
    ret_pub->headers_bytes = zc_item_headers(&ret_pub->item, b->out.headers);
    ret_pub->expires = j->expires;
    ret_pub->text = false; /* it is looked at once more */
}

bool zc_job_pub_step(struct zc_broker *b, struct zc_job *j)
{
    struct zc_pub pub;
    if (!j->begun) {
        j->begun = true;
        zc_binding_begin(b, j->walk.topic, &j->walk);
        b->walk = &j->walk;
    }
    if (!j->stored) {
        pub_of(b, j, &pub);
        j->stored = spread(b, &pub, &j->walk, &j->ticket, &j->err);
        j->split = j->split || !j->stored;
    }
    if (j->err == 0 && !j->stored)
        return true;
    /* Some of it is seen already: then the answer does not wait in its lane while waiters go on. */
    if (j->err == 0 && j->split && j->ticket > b->synced)
        return false;
    j->stopped = true;
    return true;
}

void zc_job_pub_answer(struct zc_broker *b, struct zc_job *j)
{
    struct zc_pub pub;
    pub_of(b, j, &pub);
    zc_op_published(b, j->session, &pub, j->ticket, j->err);
}

void zc_job_pub_synced(struct zc_broker *b)
{
    struct zc_job *j = first(b);
    if (j != NULL && j->stored && j->ticket <= b->synced)
        zc_job_make_ready(b, j);
}

void zc_job_pub_failed(struct zc_broker *b, uint64_t ticket)
{
    struct zc_job *j = first(b);
    if (j == NULL || j->ticket <= ticket)
        return;
    j->ticket = 0;
    j->err = ZC_EIO;
    zc_job_make_ready(b, j);
}

void zc_job_pub_end(struct zc_broker *b, struct zc_job *j)
{
    struct zc_session *s = j->session;
    if (b->walk == &j->walk)
        b->walk = NULL;
    zc_list_remove(&j->in_pubs);
    b->in_bytes -= j->body->len;
    if (s != NULL) {
        s->publishing = false;
        if (!zc_list_linked(&s->yielded)) /* its input goes on in the next turn */
            zc_list_push(&b->yielded, &s->yielded);
        zc_broker_touch(b, s);
    }
    if (first(b) != NULL)
        zc_job_make_ready(b, first(b));
}

void zc_job_pub_free_all(struct zc_broker *b)
{
    while (first(b) != NULL)
        zc_job_free(b, first(b));
}
