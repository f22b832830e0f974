/* Jobs: their life, and purge; see job.h. */
#include "zmqc/job.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "zmqc/message.h"
#include "zmqc/op.h"
#include "zmqc/reply.h"
#include "zmqc/rest.h"
#include "zmqc/walk.h"

void zc_job_make_ready(struct zc_broker *b, struct zc_job *j)
{
    if (!zc_list_linked(&j->link))
        zc_list_push(&b->jobs, &j->link);
}

static void unpin(struct zc_broker *b, struct zc_mailbox *mb)
{
    if (mb == NULL)
        return;
    mb->pins--;
    zc_broker_reap(b, mb);
}

struct zc_job *zc_job_new(struct zc_session *s, enum zc_job_kind kind, struct zc_slice id)
{
    struct zc_job *j = calloc(1, sizeof(*j) + id.len);
    if (j == NULL)
        return NULL;
    zc_list_init(&j->link);
    zc_list_init(&j->in_pubs);
    zc_list_init(&j->in_moves);
    j->session = s;
    zc_list_push(&s->jobs, &j->in_session);
    s->jobs_count++;
    j->kind = (uint8_t)kind;
    j->id_len = (uint16_t)id.len;
    if (id.len > 0)
        memcpy(j->id, id.data, id.len);
    return j;
}

/* The next move out of the same mailbox begins. */
static void leave_moves(struct zc_broker *b, struct zc_job *j)
{
    struct zc_list *moves = &j->from->moves;
    zc_list_remove(&j->in_moves);
    if (zc_list_empty(moves))
        return;
    struct zc_job *first = ZC_CONTAINER(moves->next, struct zc_job, in_moves);
    if (!first->reading)
        zc_job_make_ready(b, first);
}

void zc_job_free(struct zc_broker *b, struct zc_job *j)
{
    zc_list_remove(&j->link);
    if (zc_list_linked(&j->in_moves))
        leave_moves(b, j);
    if (j->kind == ZC_JOB_PUB)
        zc_job_pub_end(b, j);
    if (zc_list_linked(&j->in_session)) {
        zc_list_remove(&j->in_session);
        j->session->jobs_count--;
    }
    if (!j->dead) {
        unpin(b, j->from);
        unpin(b, j->to);
    }
    j->dead = true;
    if (j->reading) {
        zc_list_push(&b->jobs_dead, &j->link);
        return;
    }
    for (uint32_t i = 0; i < j->looks_len; i++)
        zc_block_unref(j->looks[i].body);
    free(j->looks);
    zc_block_unref(j->body);
    zc_block_unref(j->shown);
    free(j);
}

bool zc_job_read(struct zc_broker *b, struct zc_job *j, uint64_t place, uint32_t body_len)
{
    zc_block_unref(j->body);
    j->body = NULL;
    if (b->journal == NULL)
        return false;
    void *cookie = (void *)((uintptr_t)j | ZC_JOB_COOKIE_MARK);
    j->reading = b->journal->read(b->journal->arg, place, body_len, cookie) == 0;
    return j->reading;
}

bool zc_job_read_done(struct zc_broker *b, void *cookie, struct zc_block *body)
{
    if (((uintptr_t)cookie & ZC_JOB_COOKIE_MARK) == 0)
        return false;
    struct zc_job *j = (struct zc_job *)((uintptr_t)cookie & ~(uintptr_t)ZC_JOB_COOKIE_MARK);
    j->reading = false;
    if (j->dead) {
        zc_block_unref(body);
        zc_job_free(b, j);
        return true;
    }
    j->body = body;
    zc_job_make_ready(b, j);
    return true;
}

void zc_job_free_dead(struct zc_broker *b)
{
    while (!zc_list_empty(&b->jobs_dead)) {
        struct zc_job *j = ZC_CONTAINER(b->jobs_dead.next, struct zc_job, link);
        j->reading = false;
        zc_job_free(b, j);
    }
}

static bool purge_step(struct zc_broker *b, struct zc_job *j)
{
    struct zc_message *found[ZC_JOB_STEP];
    if (!zc_rest_wake_first(b, j->from, j->limit, ZC_JOB_STEP)) {
        j->err = ZC_ENOMEM;
        j->stopped = true;
        return true;
    }
    uint32_t n = zc_walk_collect(j->from, j->limit, true, found, ZC_JOB_STEP);
    j->stopped = n < ZC_JOB_STEP;
    if (n == 0)
        return true;
    int64_t ticket = zc_message_remove(b, found, n, true);
    if (ticket < 0) {
        j->err = (int)ticket;
        j->stopped = true;
        return true;
    }
    if (b->journal == NULL) {
        for (uint32_t i = 0; i < n; i++)
            zc_message_free(b, found[i]);
    }
    j->ticket = (uint64_t)ticket;
    j->count += n;
    return true;
}

static void answer(struct zc_broker *b, struct zc_job *j)
{
    struct zc_slice id = zc_slice(j->id, j->id_len);
    if (j->err == ZC_ELIMIT) {
        zc_reply_err(b, j->session, id, "too_large", "move: too large under that name");
        return;
    }
    if (j->err != 0) {
        zc_reply_storage(b, j->session, id, j->err);
        return;
    }
    struct zc_msg *out = &b->out;
    zc_msg_clear(out);
    out->op = zc_slice_str("ok");
    out->id = id;
    out->count = (int64_t)j->count;
    out->has = ZC_MSG_HAS_COUNT;
    zc_reply_send(b, j->session, out, j->ticket);
}

static void step(struct zc_broker *b, struct zc_job *j)
{
    struct zc_session *s = j->session;
    bool on = true;
    if (j->err != 0)
        j->stopped = true;
    else if (j->kind == ZC_JOB_PUB)
        on = zc_job_pub_step(b, j);
    else if (j->kind == ZC_JOB_PEEK)
        on = zc_job_peek_step(b, j);
    else
        on = j->kind == ZC_JOB_PURGE ? purge_step(b, j) : zc_job_move_step(b, j);
    if (!j->stopped) {
        if (on)
            zc_job_make_ready(b, j);
        return;
    }
    if (j->kind == ZC_JOB_PUB)
        zc_job_pub_answer(b, j);
    else if (j->kind != ZC_JOB_PEEK)
        answer(b, j);
    zc_job_free(b, j);
    if (s != NULL && s->state == ZC_SESSION_ENDING)
        zc_broker_touch(b, s);
}

void zc_job_start(struct zc_broker *b, struct zc_session *s, const struct zc_msg *m,
                  enum zc_job_kind kind, struct zc_mailbox *from, struct zc_mailbox *to)
{
    if (s->jobs_count >= ZC_JOB_MOST) {
        zc_reply_err(b, s, m->id, "full", "too many operations are under way in this session");
        return;
    }
    struct zc_job *j = zc_job_new(s, kind, m->id);
    if (j == NULL) {
        zc_reply_err(b, s, m->id, "unavailable", ZC_OP_NO_MEMORY);
        return;
    }
    j->from = from;
    j->to = to;
    from->pins++;
    if (kind == ZC_JOB_MOVE)
        zc_list_push(&from->moves, &j->in_moves);
    if (to != NULL)
        to->pins++;
    j->limit = b->seq_next;
    j->with_max = (m->has & ZC_MSG_HAS_MAX) != 0;
    j->left = j->with_max ? (uint64_t)m->max : kind == ZC_JOB_PEEK ? 1 : UINT64_MAX;
    /* Two moves in opposite directions would else carry the same messages for ever. */
    if (kind == ZC_JOB_MOVE && j->left > from->queued + from->delayed) {
        j->spare = j->left - (from->queued + from->delayed);
        j->left = from->queued + from->delayed;
    }
    if (kind == ZC_JOB_PEEK && !zc_job_peek_collect(b, j)) {
        zc_reply_err(b, s, m->id, "unavailable", ZC_OP_NO_MEMORY);
        zc_job_free(b, j);
        return;
    }
    s->cost += 16;
    step(b, j);
}

void zc_job_run(struct zc_broker *b)
{
    struct zc_list turn;
    if (b->input_blocked) /* the log is behind: more would only wait in memory */
        return;
    zc_list_take_all(&b->jobs, &turn);
    while (!zc_list_empty(&turn)) {
        struct zc_list *l = turn.next;
        zc_list_remove(l);
        step(b, ZC_CONTAINER(l, struct zc_job, link));
    }
}

void zc_job_resume(struct zc_broker *b, struct zc_session *s)
{
    for (struct zc_list *l = s->jobs.next; l != &s->jobs; l = l->next) {
        struct zc_job *j = ZC_CONTAINER(l, struct zc_job, in_session);
        if (!j->reading && j->kind != ZC_JOB_PUB)
            zc_job_make_ready(b, j);
    }
}

void zc_job_failed(struct zc_broker *b, uint64_t ticket)
{
    zc_job_pub_failed(b, ticket);
    for (struct zc_list *l = b->sessions.next; l != &b->sessions; l = l->next) {
        struct zc_session *s = ZC_CONTAINER(l, struct zc_session, link);
        for (struct zc_list *k = s->jobs.next; k != &s->jobs; k = k->next) {
            struct zc_job *j = ZC_CONTAINER(k, struct zc_job, in_session);
            if (j->ticket > ticket) {
                j->ticket = 0;
                j->err = ZC_EIO;
            }
        }
    }
}

void zc_job_session_end(struct zc_broker *b, struct zc_session *s)
{
    while (!zc_list_empty(&s->jobs)) {
        struct zc_job *j = ZC_CONTAINER(s->jobs.next, struct zc_job, in_session);
        if (j->kind != ZC_JOB_PUB) {
            zc_job_free(b, j);
            continue;
        }
        zc_list_remove(&j->in_session); /* it goes on without */
        s->jobs_count--;
        j->session = NULL;
    }
}
