/*
 * A user at each end of a connection over tcp_link.h: writes a known byte stream, reads and checks
 * the other one, closes when it is told to, and remembers how it ended.
 */
#ifndef ZC_TESTS_UNIT_TCP_FLOW_H
#define ZC_TESTS_UNIT_TCP_FLOW_H

#include "tcp_link.h"

struct user {
    struct zc_tcpmux_conn *conn;
    uint64_t to_write, written, read; /* bytes */
    uint8_t salt, peer_salt;
    size_t write_max, read_max; /* of one call; 0: no limit */
    int64_t read_from_ms;       /* does not read before */
    bool keep_open;             /* no FIN after the last byte */
    bool shut, opened, peer_fin, closed, wrong;
    enum zc_tcp_reason reason;
    int64_t closed_ms;
};

static inline uint8_t user_byte(uint8_t salt, uint64_t at)
{
    uint64_t x = (at ^ (at >> 11)) * UINT64_C(0x9E3779B97F4A7C15) + salt;
    return (uint8_t)(x >> 56);
}

static inline void user_write(struct link *l, int end, struct user *u)
{
    uint8_t buf[65536];
    while (u->written < u->to_write) {
        size_t n = sizeof(buf);
        if (u->write_max > 0)
            n = 1 + link_rnd(l, (unsigned)u->write_max);
        if (n > sizeof(buf))
            n = sizeof(buf);
        if (n > u->to_write - u->written)
            n = (size_t)(u->to_write - u->written);
        size_t room = zc_tcpmux_room(u->conn);
        if (room == 0) { /* asks for the event */
            CHECK_INT(zc_tcpmux_write(l->mux[end], l->now, u->conn, zc_slice(buf, 1)), 0);
            return;
        }
        for (size_t i = 0; i < n; i++)
            buf[i] = user_byte(u->salt, u->written + i);
        size_t took = zc_tcpmux_write(l->mux[end], l->now, u->conn, zc_slice(buf, n));
        CHECK_INT(took, n < room ? n : room);
        u->written += took;
        if (u->write_max > 0 && link_rnd(l, 4) == 0)
            return;
    }
    if (!u->shut && !u->keep_open) {
        u->shut = true;
        zc_tcpmux_shutdown(l->mux[end], l->now, u->conn);
    }
}

static inline void user_read(struct link *l, int end, struct user *u)
{
    struct zc_slice parts[2];
    if (link_ms(l) < u->read_from_ms)
        return;
    size_t n = zc_tcpmux_readable(u->conn, parts), all = 0, most = SIZE_MAX;
    if (u->read_max > 0)
        most = 1 + link_rnd(l, (unsigned)u->read_max);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < parts[i].len && all < most; k++, all++)
            u->wrong = u->wrong || parts[i].data[k] != user_byte(u->peer_salt, u->read + all);
    }
    u->read += all;
    if (all > 0)
        zc_tcpmux_consume(l->mux[end], l->now, u->conn, all);
}

static inline void user_event(struct link *l, struct user users[2], int end,
                              const struct zc_tcpmux_event *ev)
{
    struct user *u = &users[end];
    if (ev->kind == ZC_TCPMUX_ACCEPTED)
        u->conn = ev->conn;
    if (ev->kind == ZC_TCPMUX_ACCEPTED || ev->kind == ZC_TCPMUX_CONNECTED) {
        CHECK(!u->opened);
        u->opened = true;
    } else if (ev->kind == ZC_TCPMUX_PEER_FIN) {
        CHECK(!u->peer_fin && !u->closed);
        u->peer_fin = true;
    } else if (ev->kind == ZC_TCPMUX_CLOSED) {
        CHECK(!u->closed);
        u->closed = true;
        u->closed_ms = link_ms(l);
        u->reason = ev->reason;
    }
    CHECK(ev->conn == u->conn);
}

/* The instant at which a user does something by itself, at most until. */
static inline int64_t users_wake_ms(const struct link *l, const struct user users[2], int64_t until)
{
    int64_t now = link_ms(l), wake = until;
    for (int i = 0; i < 2; i++) {
        struct zc_slice parts[2];
        if (users[i].conn == NULL)
            continue;
        bool reads = zc_tcpmux_readable(users[i].conn, parts) > 0;
        bool writes = users[i].written < users[i].to_write && zc_tcpmux_room(users[i].conn) > 0;
        int64_t at = now + 1;
        if (!writes && reads && users[i].read_from_ms > at)
            at = users[i].read_from_ms;
        if ((reads || writes) && at < wake)
            wake = at;
    }
    return wake;
}

/* One step of time and of both users. False: both have been told that it is over, or time is. */
static inline bool users_step(struct link *l, struct user users[2], int64_t until_ms)
{
    link_step(l, users_wake_ms(l, users, until_ms) * ZC_NS_PER_MS);
    for (int i = 0; i < 2; i++) {
        struct zc_tcpmux_event ev;
        while (zc_tcpmux_event(l->mux[i], &ev))
            user_event(l, users, i, &ev);
        if (users[i].conn == NULL)
            continue;
        user_read(l, i, &users[i]);
        if (!users[i].closed)
            user_write(l, i, &users[i]);
    }
    bool over = users[0].closed && (users[1].closed || users[1].conn == NULL);
    return !over && link_ms(l) < until_ms;
}

static inline void users_start(struct link *l, struct user users[2])
{
    for (int i = 0; i < 2; i++) {
        users[i].salt = (uint8_t)(17 + i);
        users[i].peer_salt = (uint8_t)(17 + !i);
    }
    if (zc_tcpmux_connect(l->mux[0], l->now, &l->addr[1], 7, NULL, &users[0].conn) != 0)
        abort();
}

/* Runs until it is over for both, at most ms; then releases what they hold. */
static inline void users_run(struct link *l, struct user users[2], int64_t ms)
{
    int64_t until = link_ms(l) + ms;
    while (users_step(l, users, until))
        ;
    for (int i = 0; i < 2; i++) {
        if (users[i].conn == NULL)
            continue;
        users[i].read_max = 0;
        users[i].read_from_ms = 0;
        user_read(l, i, &users[i]);
        zc_tcpmux_release(l->mux[i], l->now, users[i].conn);
        users[i].conn = NULL;
    }
}

/* Both streams came whole and both ends closed in order. */
static inline void users_check_done(const struct user users[2])
{
    for (int i = 0; i < 2; i++) {
        CHECK(users[i].closed && users[i].peer_fin && !users[i].wrong);
        CHECK_INT(users[i].reason, ZC_TCP_DONE);
        CHECK_INT(users[i].read, users[!i].to_write);
    }
}

#endif
