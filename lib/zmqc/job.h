/*
 * Operations that may be long: peek, purge, move, and pub when mailboxes are bound to the topic.
 * Each does its work in steps, so that nobody waits long for another's, stops while the log is
 * behind, and answers at its end. What is put after it began is not its business: it looks at
 * sequence numbers below `limit`.
 *
 * Publications for bound mailboxes are done one after the other, so that all mailboxes get them in
 * one order. One that is through in its first step is no job at all. Until another one is, its
 * session is not read from and its waiters stand aside, so that what follows stays behind it and
 * the answer before what it causes; it waits for the disk itself. It goes on when its session ends.
 *
 * Moves out of one mailbox are done one after the other too: each would else read every message.
 *
 *   READY --step--> READY ... --> answered, freed
 *     |  ^
 *     v  | body read; output has room; its turn
 *   WAITING
 */
#ifndef ZC_ZMQC_JOB_H
#define ZC_ZMQC_JOB_H

#include "zmqc/binding.h"
#include "zmqc/broker.h"
#include "zmqc/op.h"

#define ZC_JOB_MOST 16                        /* of one session at a time */
#define ZC_JOB_STEP 1024                      /* messages of one step of one job */
#define ZC_JOB_STEP_BYTES (UINT64_C(4) << 20) /* after which a step ends, where bytes are made */
#define ZC_JOB_COOKIE_MARK 1 /* low bit of a cookie that is a job's; those of messages are even */

enum zc_job_kind { ZC_JOB_PEEK, ZC_JOB_PURGE, ZC_JOB_MOVE, ZC_JOB_PUB };

/* A message to show, as it was when the peek came. */
struct zc_job_look {
    struct zc_block *body; /* NULL: in the log, at place */
    uint64_t place, seq;
    uint32_t body_len, attempt;
};

struct zc_job {
    struct zc_list in_session;
    struct zc_list link; /* in b->jobs when READY; in b->jobs_dead when only a read knows it */
    struct zc_session *session;   /* PUB: NULL when it has ended */
    struct zc_mailbox *from, *to; /* pinned; not PUB */
    uint8_t kind;                 /* enum zc_job_kind */
    bool with_max, reading, dead;
    bool stopped; /* nothing more is to be done */
    uint64_t limit, left, count;
    uint64_t spare;  /* MOVE: so much may be added to left */
    uint64_t ticket; /* of what was journaled last */
    int err;         /* negative zc_err: why it stopped */
    /* The body that was read; for a move, that of message body_seq; for PUB what is published,
     * named by topic and the publisher's id. */
    struct zc_block *body;
    uint64_t body_seq;
    /* PEEK */
    struct zc_job_look *looks;
    uint32_t looks_len, next;
    struct zc_block *shown; /* goes out once it is known whether it is the last */
    uint32_t shown_attempt;
    /* MOVE: in from->moves */
    struct zc_list in_moves;
    /* PUB */
    struct zc_list in_pubs;
    struct zc_binding_walk walk;
    struct zc_mono expires;
    bool begun, stored;
    bool split; /* not all in one step */
    uint16_t id_len;
    uint8_t id[];
};

/* m comes into its mailbox, or comes back, and not from another one: moves out of it that began
 * later than it was put take it as well. */
void zc_job_move_more(const struct zc_message *m);
/* A publication into all mailboxes that are bound to its topic, to subscribers, and its answer. */
void zc_job_pub_start(struct zc_broker *b, struct zc_session *s, const struct zc_pub *pub);
/* More is on disk. */
void zc_job_pub_synced(struct zc_broker *b);
/* When all sessions have ended. */
void zc_job_pub_free_all(struct zc_broker *b);
/* Begins with m and does the first step. */
void zc_job_start(struct zc_broker *b, struct zc_session *s, const struct zc_msg *m,
                  enum zc_job_kind kind, struct zc_mailbox *from, struct zc_mailbox *to);
/* One step of each that is ready. */
void zc_job_run(struct zc_broker *b);
/* Jobs of the session that wait for room in its output go on. */
void zc_job_resume(struct zc_broker *b, struct zc_session *s);
/* Ends the jobs of a session, without an answer. */
void zc_job_session_end(struct zc_broker *b, struct zc_session *s);
/* Takes the answer to a read, body included. False: the cookie is no job's. */
bool zc_job_read_done(struct zc_broker *b, void *cookie, struct zc_block *body);
/* What was journaled with a ticket above this one was undone. */
void zc_job_failed(struct zc_broker *b, uint64_t ticket);
/* Frees those whose reads never come back. */
void zc_job_free_dead(struct zc_broker *b);

/* For the files of the steps: asks for a body; it is in job->body when the job is READY again, or
 * NULL. False: it cannot be read. */
bool zc_job_read(struct zc_broker *b, struct zc_job *j, uint64_t place, uint32_t body_len);

/* A new job of a session; NULL: no memory. */
struct zc_job *zc_job_new(struct zc_session *s, enum zc_job_kind kind, struct zc_slice id);
void zc_job_free(struct zc_broker *b, struct zc_job *j);
/* It goes on with the next round. */
void zc_job_make_ready(struct zc_broker *b, struct zc_job *j);

/* job_peek.c, job_move.c, job_pub.c. Each does one step. False: WAITING. */
bool zc_job_peek_step(struct zc_broker *b, struct zc_job *j);
/* What a peek shows. False: no memory. */
bool zc_job_peek_collect(struct zc_broker *b, struct zc_job *j);
bool zc_job_move_step(struct zc_broker *b, struct zc_job *j);
bool zc_job_pub_step(struct zc_broker *b, struct zc_job *j);
void zc_job_pub_answer(struct zc_broker *b, struct zc_job *j);
void zc_job_pub_failed(struct zc_broker *b, uint64_t ticket);
/* It is about to be freed: the next one has its turn. */
void zc_job_pub_end(struct zc_broker *b, struct zc_job *j);

#endif
