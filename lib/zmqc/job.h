/*
 * Operations that may be long: peek, purge, move. Each does its work in steps, so that nobody waits
 * long for another's, stops while the log is behind, and answers at its end. What is put after it
 * began is not its business: it looks at sequence numbers below `limit`.
 *
 *   READY --step--> READY ... --> answered, freed
 *     |  ^
 *     v  | body read; output has room
 *   WAITING
 */
#ifndef ZC_ZMQC_JOB_H
#define ZC_ZMQC_JOB_H

#include "zmqc/broker.h"

#define ZC_JOB_MOST 16                        /* of one session at a time */
#define ZC_JOB_STEP 1024                      /* messages of one step of one job */
#define ZC_JOB_STEP_BYTES (UINT64_C(4) << 20) /* after which a step ends, where bytes are made */
#define ZC_JOB_COOKIE_MARK 1 /* low bit of a cookie that is a job's; those of messages are even */

enum zc_job_kind { ZC_JOB_PEEK, ZC_JOB_PURGE, ZC_JOB_MOVE };

/* A message to show, as it was when the peek came. */
struct zc_job_look {
    struct zc_block *body; /* NULL: in the log, at place */
    uint64_t place, seq;
    uint32_t body_len, attempt;
};

struct zc_job {
    struct zc_list in_session;
    struct zc_list link; /* in b->jobs when READY; in b->jobs_dead when only a read knows it */
    struct zc_session *session;
    struct zc_mailbox *from, *to; /* pinned */
    uint8_t kind;                 /* enum zc_job_kind */
    bool with_max, reading, dead;
    bool stopped; /* nothing more is to be done */
    uint64_t limit, left, count;
    uint64_t ticket; /* of what was journaled last */
    int err;         /* negative zc_err: why it stopped */
    /* The body that was read; for a move, that of message body_seq. */
    struct zc_block *body;
    uint64_t body_seq;
    /* PEEK */
    struct zc_job_look *looks;
    uint32_t looks_len, next;
    struct zc_block *shown; /* goes out once it is known whether it is the last */
    uint32_t shown_attempt;
    uint16_t id_len;
    uint8_t id[];
};

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

/* job_peek.c, job_move.c. Each does one step. False: WAITING. */
bool zc_job_peek_step(struct zc_broker *b, struct zc_job *j);
/* What a peek shows. False: no memory. */
bool zc_job_peek_collect(struct zc_broker *b, struct zc_job *j);
bool zc_job_move_step(struct zc_broker *b, struct zc_job *j);

#endif
