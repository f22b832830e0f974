/*
 * One command of `work`: a message on its standard input, perhaps its output kept, until it ends.
 */
#ifndef ZC_CLI_JOB_H
#define ZC_CLI_JOB_H

#include <poll.h>
#include <stdbool.h>
#include <sys/types.h>

#include "args.h"
#include "base/buf.h"

#define ZC_JOB_DELIVERY_MAX 1024
#define ZC_JOB_ID_MAX 2048

/* What the environment of a command says of its message; freed by zc_job_env_free. argv-like, with
 * a NULL at the end; NULL when memory is refused. */
char **zc_job_env(const struct zc_args *args, const struct zmqcat_msg *m);
void zc_job_env_free(char **env);

/* All zero is one that is not used. */
struct zc_job {
    bool used;
    bool keeps_output; /* --reply */
    bool over;         /* the command has ended: status is what waitpid gave */
    bool lost;         /* its lease is: the hub gives the message to others */
    bool large;        /* its output is more than a reply can carry */
    pid_t pid;
    int in, out; /* our ends of its standard input and output, -1: none */
    int status;
    struct zc_buf payload, reply;
    size_t written; /* of the payload */
    char delivery[ZC_JOB_DELIVERY_MAX];
    size_t delivery_len;
    char id[ZC_JOB_ID_MAX]; /* of the message */
    size_t id_len;
    int64_t attempt;
    int64_t touch_at_ms; /* when the lease is extended next */
};

/* Starts the command for m. Returns 0, or an errno: nothing runs, the job stays unused but for its
 * delivery and attempt. */
int zc_job_start(struct zc_job *job, const struct zc_args *args, char **command,
                 const struct zmqcat_msg *m);
/* What it waits for: two entries. */
void zc_job_wants(const struct zc_job *job, struct pollfd ret_fds[2]);
/* Moves bytes and looks whether the command has ended. */
void zc_job_move(struct zc_job *job);
/* Back to all zero; the command has ended or never ran. */
void zc_job_done(struct zc_job *job);

#endif
