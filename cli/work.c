/*
 * work: a worker that runs a command for each message. One loop serves the hub, the commands and
 * the signals. When the hub goes away the loop waits for it: what runs then is given to others by
 * the hub, so that its result counts no more.
 *
 *   asked --message--> running --exit 0--> acknowledged (or replied)
 *                         |---- else ----> given back, with a delay that grows
 *                         '-- hub gone --> lost
 */
#include "work.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "open.h"
#include "say.h"
#include "signals.h"
#include "verbs.h"

#define LEASE_DEFAULT_S 60
#define LEASE_MAX_S 86400
#define PAUSE_FIRST_MS 100

static void come_back(struct zc_work *w)
{
    zc_signals_exit_at_once(w->running == 0); /* a signal need not wait for the resolver */
    int rc = zc_open_again(w->args, zc_work_poll, w, &w->bus);
    zc_signals_exit_at_once(false);
    if (rc != ZMQCAT_OK) {
        zc_work_away(w, zmqcat_error_text(w->bus));
        return;
    }
    zc_work_note(w, "the hub is back");
    w->away = false;
    w->pause_ms = PAUSE_FIRST_MS;
}

/* An answer to what was asked for, that is no message. */
static void no_message(struct zc_work *w, int rc)
{
    static const char *const passing[] = {"closed", "storage", "unavailable"};
    const char *code = zmqcat_error_code(w->bus);
    w->asked--;
    if (strcmp(code, "empty") == 0) {
        w->dry = true;
        return;
    }
    for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
        if (strcmp(code, passing[i]) == 0) {
            zc_work_away(w, zmqcat_error_text(w->bus));
            return;
        }
    w->status = zc_say_bus(w->args, w->bus, rc);
    w->stops = w->stops > 0 ? w->stops : 1;
}

static void receive(struct zc_work *w)
{
    while (w->bus != NULL) {
        struct zmqcat_msg m;
        int rc = zmqcat_next(w->bus, 0, &m);
        bool answer = zmqcat_error_code(w->bus)[0] != '\0';
        if (rc == ZMQCAT_TIMEOUT && !answer)
            return;
        if (rc == ZMQCAT_OK && w->stops > 0) {
            w->asked--;
            zc_work_give_back(w, m.delivery, m.delivery_len, 0);
        } else if (rc == ZMQCAT_OK) {
            w->asked--;
            zc_work_start(w, &m);
        } else if (answer && w->asked > 0) {
            no_message(w, rc);
        } else {
            zc_work_go_on(w, ZMQCAT_CLOSED);
        }
    }
}

/* Asks for as many messages as commands can be started. */
static void ask(struct zc_work *w)
{
    const char *name = w->args->rest[0];
    uint64_t limit = w->args->count, used = w->done + w->running + w->asked;
    while (w->bus != NULL && w->stops == 0 && !w->dry && w->running + w->asked < w->jobs_count &&
           (limit == 0 || used < limit)) {
        int rc = zmqcat_ask(w->bus, "ready", name, strlen(name), w->lease_s, w->args->wait_ms);
        if (rc == ZMQCAT_USAGE) {
            w->status = zc_say_bus(w->args, w->bus, rc);
            w->stops = 1;
        } else if (rc != ZMQCAT_OK) {
            zc_work_go_on(w, ZMQCAT_CLOSED);
        } else {
            w->asked++;
            used++;
        }
    }
}

/* Extends the lease of each command that still runs. */
static void extend(struct zc_work *w)
{
    int64_t now = zc_clock_ms();
    for (size_t i = 0; i < w->jobs_count && w->bus != NULL; i++) {
        struct zc_job *job = &w->jobs[i];
        if (!job->used || job->lost || now < job->touch_at_ms)
            continue;
        job->touch_at_ms = now + w->lease_s * 1000 / 3;
        int rc = zmqcat_touch(w->bus, job->delivery, job->delivery_len, w->lease_s, NULL);
        if (rc != ZMQCAT_OK && zc_work_go_on(w, rc))
            job->lost = strcmp(zmqcat_error_code(w->bus), "no_delivery") == 0;
    }
}

static void move_jobs(struct zc_work *w)
{
    for (size_t i = 0; i < w->jobs_count; i++) {
        struct zc_job *job = &w->jobs[i];
        zc_job_move(job);
        if (!job->used || !job->over)
            continue;
        if (w->bus == NULL)
            job->lost = true;
        zc_work_finish(w, job);
    }
}

/* Whether there is nothing more to do. */
static bool at_end(struct zc_work *w)
{
    if (w->running > 0)
        return false;
    if (w->stops > 0 || (w->args->count > 0 && w->done >= w->args->count))
        return true;
    if (!w->dry || w->asked > 0)
        return false;
    w->status = zc_say_fail(3, w->args->verb, w->args->rest[0], "nothing came within --wait");
    return true;
}

static int loop(struct zc_work *w)
{
    for (;;) {
        zc_work_signals(w);
        move_jobs(w);
        if (w->bus == NULL && w->stops == 0 && zc_clock_ms() >= w->retry_at_ms)
            come_back(w);
        extend(w);
        ask(w);
        receive(w);
        if (at_end(w))
            return w->status;
        zc_work_wait(w);
    }
}

int zc_work_run(const struct zc_args *args)
{
    struct zc_work w = {.args = args,
                        .command = args->rest + 1,
                        .jobs_count = args->jobs,
                        .pause_ms = PAUSE_FIRST_MS,
                        .kill_at_ms = -1};
    w.lease_s = args->lease_ms > 0 ? (args->lease_ms + 999) / 1000 : LEASE_DEFAULT_S;
    w.lease_s = w.lease_s < LEASE_MAX_S ? w.lease_s : LEASE_MAX_S;
    if (args->rest_count < 2)
        return zc_say_usage(args->verb, "missing command: work NAME -- COMMAND [ARGUMENT...]");
    int status = zc_work_check_command(args, w.command[0]);
    if (status != 0)
        return status;
    w.jobs = calloc(w.jobs_count, sizeof *w.jobs);
    w.fds = calloc(w.jobs_count * 2 + 2, sizeof *w.fds);
    if (w.jobs == NULL || w.fds == NULL)
        status = zc_say_fail(1, args->verb, NULL, "out of memory");
    if (status == 0)
        status = zc_open_polled(args, zc_work_poll, &w, &w.bus);
    if (status == 0 && !zc_work_catch())
        status = zc_say_fail(1, args->verb, NULL, strerror(errno));
    else if (status == 0)
        status = loop(&w);
    free(w.jobs);
    free(w.fds);
    zmqcat_free(w.bus);
    return status;
}
