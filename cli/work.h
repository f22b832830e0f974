/* What the parts of `work` share: its loop, its jobs, and its signals and waiting. */
#ifndef ZC_CLI_WORK_H
#define ZC_CLI_WORK_H

#include <poll.h>

#include "job.h"

struct zc_work {
    const struct zc_args *args;
    char **command;
    struct zmqcat *bus; /* NULL: away */
    struct zc_job *jobs;
    size_t jobs_count;
    struct pollfd *fds; /* room for two of each job, the hub and the signals */
    size_t running, asked;
    uint64_t done; /* jobs that ended, well or not */
    int64_t lease_s;
    bool away;           /* it was said that the hub is */
    bool dry;            /* the hub had nothing within --wait */
    int stops;           /* signals to stop */
    int signals;         /* of zc_signals_count, those that were seen */
    int64_t last_at_ms;  /* when the hub is given up, as no command runs any more; 0: not yet */
    int64_t retry_at_ms; /* when the hub is tried again, while it is away */
    int64_t pause_ms;    /* until the try after that */
    int64_t kill_at_ms;  /* when commands that were told to end are killed; -1: never */
    int status;          /* exit status */
};

/* work_job.c */

/* A line about a job or the hub. */
void zc_work_note(const struct zc_work *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The hub is gone or cannot do its work: it is tried again later, and what runs is lost. */
void zc_work_away(struct zc_work *w, const char *why);
/* After a call that failed with rc. False: the connection is of no more use, the hub is away. */
bool zc_work_go_on(struct zc_work *w, int rc);
void zc_work_give_back(struct zc_work *w, const char *delivery, size_t len, int64_t delay_s);
/* Starts the command for m; there is a free job. */
void zc_work_start(struct zc_work *w, const struct zmqcat_msg *m);
/* The command has ended: tells the hub, and frees the job. */
void zc_work_finish(struct zc_work *w, struct zc_job *job);

/* work_wait.c */

/* Whether the command could be run at all. Returns 0, or exit status 78 after saying why not. */
int zc_work_check_command(const struct zc_args *args, const char *command);
/* From here on signals are noted. False: errno says why not. */
bool zc_work_catch(void);
/* Takes in the signals that came: the first lets commands finish, the second ends them. */
void zc_work_signals(struct zc_work *w);
/* Waits until there is something to do. */
void zc_work_wait(struct zc_work *w);
/* A zmqcat_poll_fn: while the hub keeps us waiting, signals are seen and output is read. After a
 * signal, what no command runs for any more is given up. */
int zc_work_poll(void *data, struct pollfd *hub, int timeout_ms);

#endif
