/* The steps of a move, see job.h and transfer.h. */
#include <stddef.h>

#include "zmqc/job.h"
#include "zmqc/message.h"
#include "zmqc/rest.h"
#include "zmqc/transfer.h"
#include "zmqc/walk.h"

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
static bool move_one(struct zc_broker *b, struct zc_job *j, struct zc_message *m)
{
    if (j->left == 0 || zc_mailbox_full(j->to, b->limits.mailbox_cap)) {
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

void zc_job_move_more(const struct zc_message *m)
{
    const struct zc_list *moves = &m->mailbox->moves;
    for (struct zc_list *l = moves->next; l != moves; l = l->next) {
        struct zc_job *j = ZC_CONTAINER(l, struct zc_job, in_moves);
        if (m->seq >= j->limit || j->spare == 0)
            continue;
        j->spare--;
        j->left++;
    }
}

bool zc_job_move_step(struct zc_broker *b, struct zc_job *j)
{
    struct zc_message *found[ZC_JOB_STEP];
    uint32_t n = 0, at = 0, cap = 1; /* one whose body must be read ends the step */
    uint64_t bytes = 0;
    if (j->from->moves.next != &j->in_moves)
        return false; /* another one's turn */
    for (uint32_t i = 0; i < ZC_JOB_STEP && bytes < ZC_JOB_STEP_BYTES; i++) {
        if (at == n) {
            if (!zc_rest_wake_first(b, j->from, j->limit, cap)) {
                j->err = ZC_ENOMEM;
                j->stopped = true;
                break;
            }
            n = zc_walk_collect(j->from, j->limit, true, found, cap);
            at = 0;
            cap = cap * 2 < ZC_JOB_STEP ? cap * 2 : ZC_JOB_STEP;
        }
        if (n == 0)
            j->stopped = true;
        bytes += n > 0 ? found[at]->body_len : 0;
        if (n == 0 || !move_one(b, j, found[at++]))
            break;
    }
    return !j->reading;
}
