/* The jobs of `work`: how each begins and what becomes of it. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "clock.h"
#include "say.h"
#include "work.h"

#define DELAY_MAX_S 60
#define PAUSE_MAX_MS 2000

void zc_work_note(const struct zc_work *w, const char *format, ...)
{
    char text[600];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    zc_say_fail(0, w->args->verb, w->args->rest[0], text);
}

/* How a job is named in what we say. */
static const char *job_name(const struct zc_job *job, char text[200])
{
    zc_say_escape(text, 200, job->id, job->id_len);
    return text;
}

void zc_work_away(struct zc_work *w, const char *why)
{
    if (w->stops > 0)
        zc_work_note(w, "%s: what it has not heard of is given out again", why);
    else if (!w->away)
        zc_work_note(w, "%s: waiting until it is back", why);
    w->away = true;
    zmqcat_free(w->bus);
    w->bus = NULL;
    w->asked = 0;
    w->dry = false;
    w->retry_at_ms = zc_clock_ms() + w->pause_ms;
    w->pause_ms = w->pause_ms * 2 < PAUSE_MAX_MS ? w->pause_ms * 2 : PAUSE_MAX_MS;
    for (size_t i = 0; i < w->jobs_count; i++)
        w->jobs[i].lost = w->jobs[i].used;
}

bool zc_work_go_on(struct zc_work *w, int rc)
{
    if (rc == ZMQCAT_ERR || rc == ZMQCAT_REFUSED)
        return true;
    zc_work_away(w, zmqcat_error_text(w->bus));
    return false;
}

static void tell_end(const struct zc_work *w, const struct zc_job *job, int64_t delay_s)
{
    char name[200], how[300];
    const char *command = w->command[0];
    if (WIFSIGNALED(job->status))
        snprintf(how, sizeof how, "%.200s was ended by signal %d", command, WTERMSIG(job->status));
    else if (job->large)
        snprintf(how, sizeof how, "the output of %.200s is too large for a reply", command);
    else
        snprintf(how, sizeof how, "%.200s exited with %d", command, WEXITSTATUS(job->status));
    if (delay_s > 0)
        zc_work_note(w, "job %s: %s: given back for %" PRId64 " s", job_name(job, name), how,
                     delay_s);
    else
        zc_work_note(w, "job %s: %s: given back", job_name(job, name), how);
}

void zc_work_give_back(struct zc_work *w, const char *delivery, size_t len, int64_t delay_s)
{
    int rc = zmqcat_nack(w->bus, delivery, len, delay_s * 1000);
    if (rc != ZMQCAT_OK && zc_work_go_on(w, rc))
        zc_work_note(w, "a job cannot be given back: %s", zmqcat_error_text(w->bus));
}

static int64_t delay_s(const struct zc_work *w, int64_t attempt)
{
    if (w->stops > 0)
        return 0; /* our stop is not the fault of the job */
    int64_t delay = 1;
    while (attempt-- > 1 && delay < DELAY_MAX_S)
        delay *= 2;
    return delay < DELAY_MAX_S ? delay : DELAY_MAX_S;
}

/* The command has ended well. */
static void accept_result(struct zc_work *w, const struct zc_job *job)
{
    char name[200];
    const char *mailbox = w->args->rest[0];
    int rc = job->keeps_output ? zmqcat_rep(w->bus, job->id, job->id_len, mailbox, strlen(mailbox),
                                            job->reply.data, job->reply.len)
                               : zmqcat_ack(w->bus, job->delivery, job->delivery_len);
    if (rc == ZMQCAT_OK || !zc_work_go_on(w, rc))
        return;
    zc_work_note(w, "job %s: done, but the hub does not take that: %s", job_name(job, name),
                 zmqcat_error_text(w->bus));
    if (strcmp(zmqcat_error_code(w->bus), "no_delivery") != 0)
        zc_work_give_back(w, job->delivery, job->delivery_len, delay_s(w, job->attempt));
}

void zc_work_finish(struct zc_work *w, struct zc_job *job)
{
    char name[200];
    bool good = WIFEXITED(job->status) && WEXITSTATUS(job->status) == 0 && !job->large;
    if (job->lost) {
        zc_work_note(w, "job %s: ended, but its lease was over: the hub gives it out again",
                     job_name(job, name));
    } else if (good) {
        accept_result(w, job);
    } else {
        int64_t delay = delay_s(w, job->attempt);
        tell_end(w, job, delay);
        zc_work_give_back(w, job->delivery, job->delivery_len, delay);
    }
    zc_job_done(job);
    w->running--;
    w->done++;
    w->dry = false;
}

void zc_work_start(struct zc_work *w, const struct zmqcat_msg *m)
{
    struct zc_job *job = w->jobs;
    while (job->used)
        job++;
    char delivery[ZC_JOB_DELIVERY_MAX], name[200];
    size_t len = m->delivery_len < sizeof delivery ? m->delivery_len : sizeof delivery;
    memcpy(delivery, m->delivery, len);
    int err = zc_job_start(job, w->args, w->command, m);
    if (err == 0) {
        job->touch_at_ms = zc_clock_ms() + w->lease_s * 1000 / 3;
        w->running++;
        return;
    }
    zc_work_note(w, "job %s: %s cannot be run: %s: given back", job_name(job, name), w->command[0],
                 strerror(err));
    zc_work_give_back(w, delivery, len, delay_s(w, job->attempt));
    zc_job_done(job);
    w->done++;
}
