/* A command with a message on its standard input. */
#include "job.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define REPLY_MAX (2u << 20) /* more than a frame can carry */
#define PIECE 65536
#define PIECES 64

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* A pipe that no other command inherits, our end never blocking. Returns 0 or an errno. */
static int new_pipe(int ours, int ret_fds[2])
{
    if (pipe(ret_fds) < 0)
        return errno;
    for (int i = 0; i < 2; i++)
        fcntl(ret_fds[i], F_SETFD, FD_CLOEXEC);
    fcntl(ret_fds[ours], F_SETFL, fcntl(ret_fds[ours], F_GETFL) | O_NONBLOCK);
    return 0;
}

/* Returns 0 or an errno. in, out: the command's ends; out -1: our standard output. */
static int spawn(struct zc_job *job, char **command, char **env, int in, int out)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t broken;
    sigemptyset(&broken);
    sigaddset(&broken, SIGPIPE); /* we ignore it */
    int err = posix_spawn_file_actions_init(&actions);
    if (err != 0)
        return err;
    err = posix_spawnattr_init(&attr);
    if (err == 0) {
        posix_spawnattr_setsigdefault(&attr, &broken);
        posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF);
        err = posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
        if (err == 0 && out >= 0)
            err = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
        if (err == 0)
            err = posix_spawnp(&job->pid, command[0], &actions, &attr, command, env);
        posix_spawnattr_destroy(&attr);
    }
    posix_spawn_file_actions_destroy(&actions);
    return err;
}

/* Pipes and the command. Returns 0 or an errno. */
static int launch(struct zc_job *job, char **command, char **env)
{
    int in[2] = {-1, -1}, out[2] = {-1, -1};
    int err = new_pipe(1, in);
    if (err == 0 && job->keeps_output)
        err = new_pipe(0, out);
    if (err == 0)
        err = spawn(job, command, env, in[0], out[1]);
    close_fd(&in[0]);
    close_fd(&out[1]);
    job->in = in[1];
    job->out = out[0];
    if (err != 0) {
        close_fd(&job->in);
        close_fd(&job->out);
    }
    return err;
}

int zc_job_start(struct zc_job *job, const struct zc_args *args, char **command,
                 const struct zmqcat_msg *m)
{
    *job = (struct zc_job){.keeps_output = args->reply, .in = -1, .out = -1, .attempt = m->attempt};
    if (m->delivery_len > sizeof job->delivery || m->id_len > sizeof job->id)
        return EOVERFLOW;
    memcpy(job->delivery, m->delivery, m->delivery_len);
    job->delivery_len = m->delivery_len;
    if (m->id_len > 0)
        memcpy(job->id, m->id, m->id_len);
    job->id_len = m->id_len;
    if (m->payload_len > 0 && zc_buf_append(&job->payload, m->payload, m->payload_len) != 0)
        return ENOMEM;
    char **env = zc_job_env(args, m);
    int err = env == NULL ? ENOMEM : launch(job, command, env);
    zc_job_env_free(env);
    if (err != 0) {
        zc_buf_done(&job->payload);
        return err;
    }
    job->used = true;
    zc_job_move(job);
    return 0;
}

void zc_job_wants(const struct zc_job *job, struct pollfd ret_fds[2])
{
    ret_fds[0] = (struct pollfd){.fd = job->used ? job->in : -1, .events = POLLOUT};
    ret_fds[1] = (struct pollfd){.fd = job->used ? job->out : -1, .events = POLLIN};
}

/* A command that does not want its input may close it. */
static void feed(struct zc_job *job)
{
    while (job->in >= 0 && job->written < job->payload.len) {
        ssize_t n =
            write(job->in, job->payload.data + job->written, job->payload.len - job->written);
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0 && errno != EINTR)
            close_fd(&job->in);
        if (n > 0)
            job->written += (size_t)n;
    }
    close_fd(&job->in);
    zc_buf_done(&job->payload);
}

/* Reads what there is; what is too much is read and dropped, so that the command can end. One that
 * writes without end does not keep us here. */
static void drain(struct zc_job *job)
{
    for (int i = 0; i < PIECES && job->out >= 0; i++) {
        if (zc_buf_reserve(&job->reply, PIECE) != 0) {
            job->large = true;
            close_fd(&job->out);
            return;
        }
        ssize_t n = read(job->out, job->reply.data + job->reply.len, PIECE);
        if (n < 0 && errno == EAGAIN)
            return;
        if (n == 0 || (n < 0 && errno != EINTR))
            close_fd(&job->out);
        if (n > 0)
            job->reply.len += (size_t)n;
        if (job->reply.len > REPLY_MAX) {
            job->large = true;
            job->reply.len = 0;
        }
    }
}

void zc_job_move(struct zc_job *job)
{
    if (!job->used || job->over)
        return;
    feed(job);
    pid_t pid = waitpid(job->pid, &job->status, WNOHANG);
    /* After its end: what it has written is there, whoever else still holds the pipe. */
    drain(job);
    job->over = pid == job->pid;
    if (job->over) {
        close_fd(&job->in);
        close_fd(&job->out);
    }
}

void zc_job_done(struct zc_job *job)
{
    zc_buf_done(&job->payload);
    zc_buf_done(&job->reply);
    *job = (struct zc_job){0};
}
