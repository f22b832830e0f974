/* From the start of a program until it answers its first request; ends it with SIGTERM. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "load.h"

#define WAIT_S 120

static pid_t spawn(void)
{
    pid_t pid = fork();
    if (pid < 0)
        fail("fork: %s", strerror(errno));
    if (pid > 0)
        return pid;
    int null = open("/dev/null", O_RDWR);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    execvp(options.argv[0], options.argv);
    _exit(127);
}

/* One connection, one request. An error (Redis, while it loads) means not yet. */
static bool answers(void)
{
    struct conn c;
    enum answer a = MORE;
    size_t used = 0;
    if (!conn_try(&c))
        return false;
    if (options.peer->greet != NULL) {
        options.peer->greet(&c);
        a = OK;
    } else {
        conn_request(&c, PING);
        conn_send(&c);
        while (a == MORE && conn_receive(&c))
            a = options.peer->answer(&c, c.in.data, c.in.len, &used);
    }
    conn_close(&c);
    return a == OK;
}

void work_start(void)
{
    uint64_t start = now_ns(), took;
    int status;
    if (options.argv == NULL)
        fail("start wants a program");
    pid_t pid = spawn();
    while (!answers()) {
        if (waitpid(pid, &status, WNOHANG) == pid)
            fail("%s has ended", options.argv[0]);
        if (now_ns() - start > WAIT_S * UINT64_C(1000000000))
            break;
        usleep(100);
    }
    took = now_ns() - start;
    kill(pid, SIGTERM);
    waitpid(pid, &status, 0);
    if (took > WAIT_S * UINT64_C(1000000000))
        fail("%s does not answer in %d s", options.argv[0], WAIT_S);
    result_print(1, took);
}
