/* The naive model of the bus: what the hub may say, and what it must. */
#ifndef ZC_TESTS_SIM_MODEL_H
#define ZC_TESTS_SIM_MODEL_H

#include "world.h"

/* model.c: the two streams of a session */
void model_submit_until(struct world *w, struct conn *c, uint64_t given);
void model_frame(struct world *w, struct conn *c, const uint8_t *json, size_t len);
/* What liar.c calls with the frames it lets through. */
void model_message(struct world *w, struct conn *c, const struct zc_msg *m);
void model_after_pump(struct world *w);

/* wants.c */
struct want *wants_push(struct wants *l, const struct want *want);
void wants_remove(struct wants *l, struct want *want);
/* The first with this id; name, when not empty, must be that of its mailbox or topic. */
struct want *wants_by_id(struct world *w, struct wants *l, struct zc_slice id,
                         struct zc_slice name);
/* Likewise, but none that only a message answers. */
struct want *wants_for_ok(struct world *w, struct wants *l, struct zc_slice id,
                          struct zc_slice name);
bool want_waits(const struct want *want); /* take, reserve, ready */
/* Waiters of c on the box, or takes only; a want with max counts once. */
uint32_t wants_waiting(const struct conn *c, int box, bool takes_only);

/* ends.c: sessions */
void model_session_over(struct world *w, struct conn *c);
void model_closed(struct world *w, struct conn *c);
/* Frames of c to its waiters may have been on their way. */
bool model_frames_unseen(const struct world *w, const struct conn *c);

/* restart.c */
void model_crash(struct world *w, bool power_loss, bool clean);
/* A bit turned over: one record is damaged. */
void model_rot(struct world *w);
void model_ready(struct world *w);

/* queue.c: puts and what lies in a mailbox */
void queue_submit(struct world *w, struct conn *c, struct want *want);
void queue_put_ok(struct world *w, struct conn *c, struct want *want);
void queue_put_err(struct world *w, struct conn *c, struct want *want, struct zc_slice code);
/* Must be delivered some time, as far as the model knows. */
bool queue_required(const struct world *w, const struct message *m);
/* May be there. */
bool queue_possible(const struct message *m);
/* m1 was surely accepted before m2. */
bool queue_before(const struct message *m1, const struct message *m2);
/* It is gone for good, as its taker knows. */
void queue_gone(struct world *w, struct message *m);
/* Adds the message to the list of its mailbox. */
void queue_add(struct world *w, uint32_t uid);
/* Drops what is gone from the list of a mailbox. */
void queue_compact(struct world *w, int box);

/* consumer.c: puts that want a consumer */
void consumer_submit(struct world *w, struct conn *c, struct want *want);
void consumer_ok(struct world *w, struct conn *c, const struct want *want);
void consumer_unroutable(struct world *w, struct conn *c, const struct want *want);
/* No disk request is under way: whoever waited when a put found no consumer still does. */
void consumer_settled(struct world *w);

/* losses.c */
/* From now on `budget` of the required messages in the box may be lost (box -1: in any). */
void losses_allow(struct world *w, int box, uint32_t budget);
/* All is drained: what is still required is lost. */
void losses_judge(struct world *w);

/* deliver.c, order.c: messages handed out */
void deliver_message(struct world *w, struct conn *c, const struct zc_msg *m);
void order_fifo(struct world *w, const struct conn *c, const struct message *m, bool take);
void order_waiters(struct world *w, const struct want *served, uint32_t uid);
/* No disk request is under way: whoever was passed over stays so. */
void order_passed(struct world *w);

/* lease.c: ack, nack, touch, rep by the worker */
void lease_submit(struct world *w, struct conn *c, struct want *want);
void lease_answer(struct world *w, struct conn *c, struct want *want, const struct zc_msg *m);
/* The store failed: the lease may be over, and after a crash the message may be gone. */
void lease_unsure(struct world *w, struct conn *c, struct want *want);
/* The holder of the message has surely lost it, or may have. */
bool lease_may_be_over(struct world *w, const struct delivery *d);

/* answer.c: ok and err */
void answer_ok(struct world *w, struct conn *c, const struct zc_msg *m);
void answer_err(struct world *w, struct conn *c, const struct zc_msg *m);

/* topics.c */
void topics_submit(struct world *w, struct conn *c, struct want *want);
void topics_ok(struct world *w, struct conn *c, struct want *want, const struct zc_msg *m);
void topics_message(struct world *w, struct conn *c, const struct zc_msg *m);
/* All has been delivered that will be: whatever is still expected must have been dropped. */
void topics_settled(struct world *w, struct conn *c);

/* What operators do, in want.target. */
enum operation {
    DO_PUT,
    DO_AGAIN,
    DO_PUB,
    DO_MOVE,
    DO_PURGE,
    DO_PEEK,
    DO_BIND,
    DO_UNBIND,
    DO_RESERVE, /* from here on: hold.c */
    DO_READY,
    DO_ACK,
    DO_NACK,
};

/* where.c: the mailboxes in which an item may lie, and what a purge may and must remove */
void where_submit(struct world *w, struct want *want);
void where_ok(struct world *w, struct conn *c, struct want *want, int64_t count);
/* The request ended without an ok. */
void where_lost(struct world *w, const struct want *want);

/* operate.c */
void operate_ask(struct world *w, struct conn *c);
const char *operate_box(int box);
void operate_submit(struct world *w, struct want *want);
void operate_ok(struct world *w, struct conn *c, struct want *want, const struct zc_msg *m);
void operate_err(struct world *w, struct conn *c, struct want *want, struct zc_slice code);
void operate_message(struct world *w, struct conn *c, const struct zc_msg *m);
/* Takes all that is there. */
void operate_drain(struct world *w, struct conn *c);
/* All was taken: looks for what is missing. */
void operate_judge(struct world *w);

/* hold.c: leases of operators */
/* Fills in the request; false: there is nothing to ask. */
bool hold_ask(struct world *w, struct conn *c, struct want *want);
void hold_submit(struct world *w, const struct want *want);
void hold_ok(struct world *w, struct conn *c, const struct want *want);
void hold_err(struct world *w, struct conn *c, const struct want *want, struct zc_slice code);
/* An err that the request may get at any time. */
bool hold_allows(const struct want *want, struct zc_slice code);
/* The request ended without an answer. */
void hold_lost(struct world *w, const struct want *want);
void hold_message(struct world *w, struct conn *c, uint32_t uid, const struct zc_msg *m);
/* It is given to somebody: nobody holds it, and it is not delayed. */
void hold_check(struct world *w, struct conn *c, uint32_t uid);
/* A peek shows the item. */
void hold_peeked(struct world *w, struct conn *c, const struct want *want, uint32_t uid);
/* Somebody may have held it at that time, as the frames that were seen say. */
bool hold_may_be_held(const struct item *item, int64_t since);
/* Nobody waits, and nothing is on its way to somebody who waited. */
bool hold_is_quiet(const struct world *w);
void hold_crash(struct world *w);

/* requests.c */
void requests_rep(struct world *w, struct conn *c, const struct zc_msg *m);
void requests_settled(struct world *w);

/* settle.c: the checks when nothing moves */
void settle_check(struct world *w);
/* drain.c: takes all that is left and looks for what is missing. */
void drain_all(struct world *w);

/* run.c */
void run_seed(struct world *w);
/* Lets everything come to rest for `ns`. */
void run_calm(struct world *w, int64_t ns);

/* liar.c: mutations for the self-test */
size_t liar_count(void);
const char *liar_name(size_t i);
/* w->made is about to be sent. */
void liar_request(struct world *w, struct conn *c, const struct want *want);
void liar_frame(struct world *w, struct conn *c, struct zc_msg *m, const uint8_t *json, size_t len);

#endif
