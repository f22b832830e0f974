/* The steps of a move, see job.h and transfer.h. */
#include <stddef.h>

#include "zmqc/job.h"
#include "zmqc/message.h"
#include "zmqc/transfer.h"

static bool full(const struct zc_broker *b, const struct zc_mailbox *mb)
{
    return mb->queued + mb->delayed + mb->pending >= b->limits.mailbox_cap;
}

/* The next message of the source, or NULL. */
static struct zc_message *next(const struct zc_job *j)
{
    struct zc_message *m = zc_mailbox_peek(j->from);
    if (m != NULL && m->seq < j->limit)
        return m;
    for (struct zc_list *l = j->from->later.next; l != &j->from->later; l = l->next) {
        m = ZC_CONTAINER(l, struct zc_message, link);
        if (m->seq < j->limit)
            return m;
    }
    return NULL;
}

/* The stored form of m, or NULL: it is being read. */
static struct zc_block *body_of(struct zc_broker *b, struct zc_job *j, const struct zc_message *m)
{
    if (m->body != NULL)
        return m->body;
    if (j->body_seq == m->seq) {
        if (j->body == NULL)
            j->err = ZC_EIO; /* it cannot be read */
        return j->body;
    }
    j->body_seq = m->seq;
    if (!zc_job_read(b, j, m->place, m->body_len))
        j->err = ZC_EIO;
    return NULL;
}

/* One message. False: no more in this step. */
static bool move_one(struct zc_broker *b, struct zc_job *j)
{
    struct zc_message *m = next(j);
    if (m == NULL || j->left == 0 || full(b, j->to)) {
        j->stopped = true;
        return false;
    }
    if (m->expires.ns <= b->now.mono.ns) {
        zc_message_expire(b, m);
        return true;
    }
    struct zc_block *body = body_of(b, j, m);
    int64_t ticket = body != NULL ? zc_transfer_begin(b, m, body, j->to) : 0;
    if (ticket == ZC_ELIMIT && j->count > 0) {
        j->stopped = true;
        return false;
    }
    if (ticket < 0)
        j->err = (int)ticket;
    j->stopped = j->err != 0;
    if (body == NULL || j->err != 0)
        return false;
    j->ticket = (uint64_t)ticket;
    j->left--;
    j->count++;
    return true;
}

bool zc_job_move_step(struct zc_broker *b, struct zc_job *j)
{
    for (uint32_t i = 0; i < ZC_JOB_STEP; i++) {
        if (!move_one(b, j))
            break;
    }
    return !j->reading;
}
