/*
 * Bytes of one connection. The socket never blocks; poll waits, with a deadline. One buffer
 * receives; frames are handed out where they lie in it.
 */
#include "client/wire.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define READ_MIN 65536
/* Undecoded bytes taken in while sending; beyond this the hub must take ours first. */
#define UNREAD_MAX (64u << 20)

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0 /* macOS: SO_NOSIGPIPE is set on the socket */
#endif

static int fail(struct zmqcat *bus, int rc, const char *why)
{
    snprintf(bus->why, sizeof bus->why, "%s", why);
    return rc;
}

int64_t zc_wire_now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int64_t zc_wire_deadline(int64_t ms)
{
    int64_t now = zc_wire_now_ms();
    return ms < 0 || ms > ZC_WIRE_FOREVER - now ? ZC_WIRE_FOREVER : now + ms;
}

void zc_wire_close(struct zmqcat *bus)
{
    if (bus->fd >= 0)
        close(bus->fd);
    bus->fd = -1;
}

int zc_wire_poll(const struct zmqcat *bus, struct pollfd *fd, int timeout_ms)
{
    bool own = bus->poll != NULL && timeout_ms != 0;
    return own ? bus->poll(bus->poll_data, fd, timeout_ms) : poll(fd, 1, timeout_ms);
}

/* Waits for any of events. Returns what came, 0 at the deadline, ZMQCAT_STOPPED or ZMQCAT_FAILED.
 */
static int wait_for(struct zmqcat *bus, short events, int64_t deadline_ms)
{
    for (;;) {
        int timeout_ms = -1;
        if (deadline_ms != ZC_WIRE_FOREVER) {
            int64_t left = deadline_ms - zc_wire_now_ms();
            timeout_ms = left <= 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
        }
        struct pollfd p = {.fd = bus->fd, .events = events};
        int n = zc_wire_poll(bus, &p, timeout_ms);
        if (n > 0)
            return p.revents;
        if (n < 0 && errno == ECANCELED)
            return fail(bus, ZMQCAT_STOPPED, "stopped before the hub answered");
        if (n < 0 && errno != EINTR)
            return fail(bus, ZMQCAT_FAILED, strerror(errno));
        if (timeout_ms >= 0 && zc_wire_now_ms() >= deadline_ms)
            return 0;
    }
}

/* Drops the bytes of frames that were handed out. */
static void compact(struct zmqcat *bus)
{
    if (bus->rx_used == bus->rx.len)
        bus->rx.len = 0;
    else if (bus->rx_used > 0)
        zc_buf_consume(&bus->rx, bus->rx_used);
    bus->rx_used = 0;
}

/* One read of what is there. Returns 0 (also when nothing was), ZMQCAT_CLOSED or ZMQCAT_FAILED. */
static int fill(struct zmqcat *bus, size_t want)
{
    compact(bus);
    if (zc_buf_reserve(&bus->rx, want > READ_MIN ? want : READ_MIN) != 0)
        return fail(bus, ZMQCAT_FAILED, "out of memory");
    for (;;) {
        ssize_t n = recv(bus->fd, bus->rx.data + bus->rx.len, bus->rx.cap - bus->rx.len, 0);
        if (n > 0) {
            bus->rx.len += (size_t)n;
            return ZMQCAT_OK;
        }
        if (n == 0 || errno == ECONNRESET || errno == EPIPE)
            return fail(bus, ZMQCAT_CLOSED, "the hub closed the connection");
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            return ZMQCAT_OK;
        if (errno != EINTR)
            return fail(bus, ZMQCAT_FAILED, strerror(errno));
    }
}

/* Returns the bytes that the socket took, 0 when it is full, or negative with errno. */
static ssize_t send_some(int fd, struct zc_slice bytes)
{
    for (;;) {
        ssize_t n = send(fd, bytes.data, bytes.len, MSG_NOSIGNAL);
        if (n >= 0)
            return n;
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            return 0;
        if (errno != EINTR)
            return -1;
    }
}

static int send_all(struct zmqcat *bus, struct zc_slice bytes, int64_t deadline_ms)
{
    bool reading = true;
    while (bytes.len > 0) {
        ssize_t n = send_some(bus->fd, bytes);
        if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
            return ZMQCAT_OK;
        if (n < 0)
            return fail(bus, ZMQCAT_FAILED, strerror(errno));
        bytes = zc_slice(bytes.data + n, bytes.len - (size_t)n);
        if (n > 0 || bytes.len == 0)
            continue;
        reading = reading && bus->rx.len - bus->rx_used < UNREAD_MAX;
        int got = wait_for(bus, reading ? POLLOUT | POLLIN : POLLOUT, deadline_ms);
        if (got < 0)
            return got;
        if (got == 0)
            return fail(bus, ZMQCAT_TIMEOUT, "the hub does not take what is sent to it");
        /* After an end of input the hub may still read. */
        if (reading && (got & POLLIN) != 0 && fill(bus, READ_MIN) != ZMQCAT_OK)
            reading = false;
    }
    return ZMQCAT_OK;
}

int zc_wire_send(struct zmqcat *bus, struct zc_slice bytes, int64_t deadline_ms)
{
    if (bus->fd < 0)
        return fail(bus, ZMQCAT_CLOSED, "the connection is closed");
    int rc = send_all(bus, bytes, deadline_ms);
    if (rc != ZMQCAT_OK)
        zc_wire_close(bus);
    return rc;
}

static int broken(struct zmqcat *bus, const char *why)
{
    zc_wire_close(bus);
    return fail(bus, ZMQCAT_PROTOCOL, why);
}

int zc_wire_frame(struct zmqcat *bus, int64_t deadline_ms, uint8_t **ret_json, size_t *ret_len)
{
    for (;;) {
        size_t size = 0, have = bus->rx.len - bus->rx_used;
        switch (zc_frame_peek(bus->rx.data + bus->rx_used, have, &size)) {
        case ZC_FRAME_WHOLE:
            *ret_json = bus->rx.data + bus->rx_used + ZC_FRAME_HEADER;
            *ret_len = size - ZC_FRAME_HEADER;
            bus->rx_used += size;
            return ZMQCAT_OK;
        case ZC_FRAME_PARTIAL:
            break;
        case ZC_FRAME_BAD_MAGIC:
            return broken(bus, "what answers there does not speak the zmqcat protocol");
        case ZC_FRAME_BAD_LENGTH:
            return broken(bus, "the hub sent a frame of unusable length");
        }
        if (bus->fd < 0)
            return fail(bus, ZMQCAT_CLOSED, "the connection is closed");
        int got = wait_for(bus, POLLIN, deadline_ms);
        if (got <= 0)
            return got < 0 ? got : fail(bus, ZMQCAT_TIMEOUT, "no answer in time");
        int rc = fill(bus, size > have ? size - have : 0);
        if (rc != ZMQCAT_OK) {
            zc_wire_close(bus);
            return rc;
        }
    }
}
