/*
 * Standard output without its buffer: a line of `sub` must not stick, and a slow reader must not
 * make the hub believe that we are dead.
 */
#include "out.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

/* What a pipe takes without blocking once poll says that it takes anything. */
#define PIECE 4096

static int fail(const char *why)
{
    fprintf(stderr, "zmqcat: standard output: %s\n", why);
    return 1;
}

int zc_out_usable(void)
{
    int flags = fcntl(STDOUT_FILENO, F_GETFL);
    bool open = flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
    return open ? 0 : fail("it is closed");
}

void zc_out_init(struct zc_out *out, struct zmqcat *bus)
{
    memset(out, 0, sizeof *out);
    out->bus = bus;
    out->terminal = isatty(STDOUT_FILENO) == 1;
}

void zc_out_done(struct zc_out *out)
{
    zc_buf_done(&out->buf);
}

void zc_out_raw(struct zc_out *out, const void *data, size_t len)
{
    if (len > 0 && zc_buf_append(&out->buf, data, len) != 0)
        out->short_of_memory = true;
}

void zc_out_str(struct zc_out *out, const char *text)
{
    zc_out_raw(out, text, strlen(text));
}

void zc_out_name(struct zc_out *out, const char *data, size_t len)
{
    size_t cap = 8 * len + 16; /* the longest escape of one byte is shorter */
    char *text = malloc(cap);
    if (text == NULL) {
        out->short_of_memory = true;
        return;
    }
    zc_out_raw(out, text, zc_text_escape(text, cap, zc_slice(data, len)));
    free(text);
}

void zc_out_payload(struct zc_out *out, const void *data, size_t len)
{
    if (!out->terminal) {
        zc_out_raw(out, data, len);
        return;
    }
    const char *p = data, *end = p + len;
    while (p < end) {
        const char *stop = p;
        while (stop < end && *stop != '\t' && *stop != '\n')
            stop++;
        zc_out_name(out, p, (size_t)(stop - p));
        if (stop < end)
            zc_out_raw(out, stop++, 1);
        p = stop;
    }
}

bool zc_out_gone(struct zc_out *out)
{
    struct pollfd p = {.fd = STDOUT_FILENO};
    if (poll(&p, 1, 0) > 0 && (p.revents & (POLLERR | POLLHUP)) != 0)
        out->gone = true;
    return out->gone;
}

/* Waits until the reader takes something; meanwhile the hub's heartbeats are answered. Any trouble
 * with the bus shows when it is next used. */
static void wait_writable(struct zc_out *out)
{
    struct pollfd p[2] = {{.fd = STDOUT_FILENO, .events = POLLOUT}, {.fd = -1, .events = POLLIN}};
    if (poll(&p[0], 1, 0) > 0)
        return;
    if (out->bus != NULL)
        p[1].fd = zmqcat_fd(out->bus);
    while (p[0].revents == 0) {
        int timeout_ms = out->tick != NULL ? out->tick(out->data) : -1;
        if (p[1].fd >= 0 && zmqcat_poll(out->bus) != ZMQCAT_OK)
            p[1].fd = -1;
        if (poll(p, 2, timeout_ms) < 0)
            p[0].revents = 0;
    }
}

int zc_out_flush(struct zc_out *out)
{
    if (out->short_of_memory)
        return fail(strerror(ENOMEM));
    size_t done = 0;
    while (done < out->buf.len) {
        wait_writable(out);
        size_t n = out->buf.len - done;
        ssize_t wrote = write(STDOUT_FILENO, out->buf.data + done, n < PIECE ? n : PIECE);
        if (wrote >= 0)
            done += (size_t)wrote;
        else if (errno == EPIPE)
            out->gone = true;
        else if (errno != EINTR && errno != EAGAIN)
            return fail(strerror(errno));
        if (out->gone)
            return 1;
    }
    out->buf.len = 0;
    return 0;
}
