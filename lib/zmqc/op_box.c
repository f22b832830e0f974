/* peek, purge and move: what an operator does with whole mailboxes, see op.h and job.h. */
#include "zmqc/job.h"
#include "zmqc/op.h"
#include "zmqc/reply.h"

static bool bad_name(struct zc_broker *b, struct zc_session *s, const struct zc_msg *m,
                     struct zc_slice name)
{
    if (name.len == 0)
        zc_reply_err(b, s, m->id, "empty_name", "mailbox: empty name");
    return name.len == 0;
}

static void none(struct zc_broker *b, struct zc_session *s, const struct zc_msg *m)
{
    struct zc_msg *out = &b->out;
    zc_msg_clear(out);
    out->op = zc_slice_str("ok");
    out->id = m->id;
    out->has = ZC_MSG_HAS_COUNT;
    zc_reply_send(b, s, out, 0);
}

void zc_op_peek(struct zc_broker *b, struct zc_session *s, struct zc_msg *m)
{
    if (bad_name(b, s, m, m->name))
        return;
    struct zc_mailbox *mb = zc_broker_mailbox(b, m->name, false, NULL, NULL);
    if (mb != NULL)
        zc_job_start(b, s, m, ZC_JOB_PEEK, mb, NULL);
    else
        zc_reply_err(b, s, m->id, "empty", "mailbox: empty");
}

void zc_op_purge(struct zc_broker *b, struct zc_session *s, struct zc_msg *m)
{
    if (bad_name(b, s, m, m->name))
        return;
    struct zc_mailbox *mb = zc_broker_mailbox(b, m->name, false, NULL, NULL);
    if (mb != NULL)
        zc_job_start(b, s, m, ZC_JOB_PURGE, mb, NULL);
    else
        none(b, s, m);
}

void zc_op_move(struct zc_broker *b, struct zc_session *s, struct zc_msg *m)
{
    const char *code = NULL, *text = NULL;
    if (bad_name(b, s, m, m->name) || bad_name(b, s, m, m->to))
        return;
    if (m->to.data[0] == '$') {
        zc_reply_err(b, s, m->id, "denied", "name is reserved");
        return;
    }
    if (zc_slice_eq(m->name, m->to)) {
        zc_reply_err(b, s, m->id, "invalid", "move: name and to are the same mailbox");
        return;
    }
    struct zc_mailbox *from = zc_broker_mailbox(b, m->name, false, NULL, NULL);
    if (from == NULL) {
        none(b, s, m);
        return;
    }
    struct zc_mailbox *to = zc_broker_mailbox(b, m->to, true, &code, &text);
    if (to == NULL) {
        zc_reply_err(b, s, m->id, code, text);
        return;
    }
    to->pins++;
    zc_job_start(b, s, m, ZC_JOB_MOVE, from, to);
    to->pins--;
    zc_broker_reap(b, to);
}
