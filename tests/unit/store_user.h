/*
 * A naive user of the log for tests: it remembers of every message what it was promised, and checks
 * the promises at each event and after each reopening.
 */
#ifndef ZC_TESTS_UNIT_STORE_USER_H
#define ZC_TESTS_UNIT_STORE_USER_H

#include <stddef.h>

#include "base/buf.h"
#include "base/rng.h"
#include "store/log.h"
#include "store/record.h"
#include "store_disk.h"
#include "test.h"

#define USER_SEQS 60000

enum user_state {
    U_NONE,
    U_PENDING,  /* appended */
    U_LIVE,     /* acknowledged */
    U_REMOVING, /* removal appended */
    U_GONE,     /* removal acknowledged */
    U_REFUSED,  /* put failed: may be there as long as no segment was sealed since */
    U_MAYBE,    /* removal failed: likewise */
};

struct user_msg {
    enum user_state state;
    bool was_live; /* REMOVING: the put was acknowledged */
    bool known;    /* accepted while opening */
    uint64_t put_ticket, remove_ticket, place, place_known;
};

struct user_mark {
    uint64_t ticket, seq, place;
};

struct user {
    struct fd disk;
    struct zc_log *log;
    struct zc_rng rng;
    struct zc_now now;
    enum zc_log_sync sync;
    uint64_t segment_bytes;
    uint64_t seq_next, seq_base;
    struct user_msg *msgs;
    bool ready, closed, unusable;
    char unusable_text[200];
    uint64_t synced, written, failed_events, state_events, read_answers;
    enum zc_log_state state;
    int read_err;
    uint64_t states_seen; /* STATE records while opening */
    bool no_durable_check;
    bool damage_expected; /* some LIVE may be missing */
    uint64_t missing;
    bool in_order;
    uint64_t last_seq;
    struct user_mark *marks; /* STATE records of this life, in order of their tickets */
    uint32_t marks_len, marks_synced;
    uint64_t moves_told, moves;
    bool heads; /* indexes have the first bytes of a body only */
    bool steps; /* the disk tells what is written and still syncs */
};

/* Body of message seq: mostly small, bytes that depend on seq alone, zeros among them. */
static inline size_t user_len(struct user *u, uint64_t seq)
{
    (void)u;
    uint64_t h = seq * UINT64_C(0x9e3779b97f4a7c15);
    if (h >> 59 == 0)
        return 3000 + (h >> 40) % 9000;
    return (h >> 33) % 200;
}

static inline size_t user_body(struct user *u, uint64_t seq, uint8_t *ret_body)
{
    size_t len = user_len(u, seq);
    uint64_t h = seq;
    for (size_t i = 0; i < len; i++) {
        h = h * UINT64_C(6364136223846793005) + 1442695040888963407u;
        ret_body[i] = (h >> 60) == 0 ? 0 : (uint8_t)(h >> 33);
    }
    return len;
}

static inline bool user_body_is(struct user *u, uint64_t seq, const uint8_t *body, size_t len)
{
    static uint8_t want[16384];
    size_t n = user_body(u, seq, want);
    return n == len && memcmp(want, body, n) == 0;
}

/* Opening by an index gives the first bytes only. */
static inline size_t user_head(struct zc_slice body)
{
    return body.len < 20 ? body.len : 20;
}

static inline bool user_head_is(struct user *u, uint64_t seq, const struct zc_log_event *ev)
{
    static uint8_t want[16384];
    size_t n = user_body(u, seq, want);
    return n == ev->body_len && ev->body.len >= (u->heads && n > 20 ? 20 : n) &&
           memcmp(want, ev->body.data, ev->body.len) == 0;
}

static inline void user_record(struct user *u, const struct zc_log_event *ev)
{
    if (ev->type == ZC_RECORD_PUT) {
        CHECK(ev->seq < USER_SEQS && ev->place != 0);
        struct user_msg *m = &u->msgs[ev->seq % USER_SEQS];
        CHECK(user_head_is(u, ev->seq, ev));
        if (m->known)
            zc_log_forget(u->log, m->place_known);
        else if (ev->seq < u->last_seq)
            u->in_order = false;
        u->last_seq = ev->seq;
        m->known = true;
        m->place_known = ev->place;
        zc_log_own(u->log, ev->place, &m->place);
    } else if (ev->type == ZC_RECORD_REMOVE) {
        for (size_t i = 0; i + 8 <= ev->body.len; i += 8) {
            uint64_t seq = 0;
            for (int b = 7; b >= 0; b--)
                seq = seq << 8 | ev->body.data[i + (size_t)b];
            CHECK(seq < USER_SEQS);
            struct user_msg *m = &u->msgs[seq % USER_SEQS];
            if (m->known)
                zc_log_forget(u->log, m->place_known);
            m->known = false;
        }
    } else {
        CHECK_INT(ev->type, ZC_RECORD_STATE);
        CHECK_INT(ev->body.len, 12);
        u->states_seen++;
    }
}

/* Opening is complete: what must be there is, and nothing that must not. */
static inline void user_ready(struct user *u)
{
    u->ready = true;
    u->disk.spare_reads = false;
    for (uint64_t seq = 1; seq < u->seq_next; seq++) {
        struct user_msg *m = &u->msgs[seq];
        bool must = m->state == U_LIVE, never = m->state == U_NONE || m->state == U_GONE;
        if (must && !m->known) {
            u->missing++;
            if (!u->damage_expected) {
                test_faults++;
                printf("message %llu was acknowledged and is lost\n", (unsigned long long)seq);
            }
        }
        if (never && m->known && !u->damage_expected) {
            test_faults++;
            printf("message %llu came back (state %d, place %llx, put at %llx)\n",
                   (unsigned long long)seq, m->state, (unsigned long long)m->place_known,
                   (unsigned long long)m->place);
        }
        m->state = m->known ? U_LIVE : (m->state == U_NONE ? U_NONE : U_GONE);
        m->place = m->place_known;
        m->put_ticket = m->remove_ticket = 0; /* tickets begin anew */
        CHECK(!m->known || seq <= zc_log_seq_max(u->log));
    }
}

/* The bytes of the message are on the platter, not only in the cache. */
static inline void user_durable(struct user *u, uint64_t seq)
{
    struct user_msg *m = &u->msgs[seq];
    struct fd_file *f = fd_find(&u->disk, (uint32_t)(m->place >> 32));
    CHECK(f != NULL && f->durable);
    if (f != NULL)
        CHECK(user_body_is(u, seq, f->stable + (uint32_t)m->place + 24, user_len(u, seq)));
}

static inline void user_marks_durable(struct user *u, uint64_t ticket)
{
    for (; u->marks_synced < u->marks_len; u->marks_synced++) {
        struct user_mark *k = &u->marks[u->marks_synced];
        struct fd_file *f = fd_find(&u->disk, (uint32_t)(k->place >> 32));
        uint64_t seq = 0;
        if (k->ticket > ticket)
            return;
        CHECK(k->place != 0);
        if (u->no_durable_check || f == NULL)
            continue; /* its segment may be consumed already */
        for (int i = 7; i >= 0; i--)
            seq = seq << 8 | f->stable[(uint32_t)k->place + 16 + (uint32_t)i];
        CHECK_INT(f->stable[(uint32_t)k->place + 12], ZC_RECORD_STATE);
        CHECK_INT(seq, k->seq);
    }
}

static inline void user_synced(struct user *u, uint64_t ticket)
{
    CHECK(ticket > u->synced);
    u->synced = ticket;
    user_marks_durable(u, ticket);
    for (uint64_t seq = u->seq_base; seq < u->seq_next; seq++) {
        struct user_msg *m = &u->msgs[seq];
        if (m->state == U_PENDING && m->put_ticket <= ticket) {
            m->state = U_LIVE;
            if (!u->no_durable_check)
                user_durable(u, seq);
        } else if (m->state == U_REMOVING && m->put_ticket <= ticket) {
            m->was_live = true;
            if (m->remove_ticket <= ticket) {
                m->state = U_GONE;
                zc_log_forget(u->log, m->place);
            }
        }
    }
    while (u->seq_base < u->seq_next &&
           (u->msgs[u->seq_base].state == U_GONE || u->msgs[u->seq_base].state == U_NONE))
        u->seq_base++;
}

static inline void user_failed(struct user *u, uint64_t ticket)
{
    u->failed_events++;
    while (u->marks_len > u->marks_synced && u->marks[u->marks_len - 1].ticket > ticket)
        u->marks_len--;
    for (uint64_t seq = u->seq_base; seq < u->seq_next; seq++) {
        struct user_msg *m = &u->msgs[seq];
        if (m->state == U_PENDING && m->put_ticket > ticket)
            m->state = U_REFUSED;
        else if (m->state == U_REMOVING && !m->was_live && m->put_ticket > ticket)
            m->state = U_REFUSED;
        else if (m->state == U_REMOVING && m->remove_ticket > ticket)
            m->state = U_MAYBE;
    }
}

/* A fresh segment was verified: what was refused is sealed away. */
static inline void user_moved(struct user *u)
{
    for (uint64_t seq = u->seq_base; seq < u->seq_next; seq++) {
        struct user_msg *m = &u->msgs[seq];
        if (m->state == U_REFUSED)
            m->state = U_NONE;
        if (m->state == U_MAYBE)
            m->state = U_LIVE;
    }
}

/* The log wants to move a record: it is what was put, and moves unless it is being removed. */
static inline void user_move(struct user *u, const struct zc_log_event *ev)
{
    struct user_msg *m =
        (struct user_msg *)(void *)((char *)ev->owner - offsetof(struct user_msg, place));
    uint64_t seq = (uint64_t)(m - u->msgs);
    static uint8_t body[16384];
    u->moves_told++;
    CHECK(u->ready && seq < USER_SEQS && ev->place == m->place);
    if (seq >= USER_SEQS || m->state != U_LIVE || fd_rand(&u->disk) % 32 == 0)
        return;
    size_t len = user_body(u, seq, body);
    if (ev->err == 0) {
        CHECK_INT(ev->seq, seq);
        CHECK(user_body_is(u, seq, ev->body.data, ev->body.len));
    } else {
        CHECK(u->damage_expected && ev->err == ZC_EBADMSG && ev->body.data == NULL);
    }
    u->moves += zc_log_move(u->log, ZC_RECORD_PUT, seq, zc_slice(body, len)) > 0;
}

static inline void user_event(struct user *u, struct zc_log_event *ev)
{
    struct zc_log_status st;
    switch (ev->kind) {
    case ZC_LOG_RECORD:
        CHECK(!u->ready);
        user_record(u, ev);
        break;
    case ZC_LOG_READY:
        user_ready(u);
        break;
    case ZC_LOG_WRITTEN:
        CHECK(ev->ticket > u->written);
        u->written = ev->ticket;
        break;
    case ZC_LOG_SYNCED:
        user_synced(u, ev->ticket);
        break;
    case ZC_LOG_FAILED:
        user_failed(u, ev->ticket);
        break;
    case ZC_LOG_STATE:
        u->state_events++;
        zc_log_status(u->log, &st);
        if (u->state == ZC_LOG_ERROR && st.state == ZC_LOG_OK)
            user_moved(u);
        u->state = st.state;
        u->closed = st.state == ZC_LOG_CLOSED;
        break;
    case ZC_LOG_READ: {
        uint64_t seq = (uint64_t)(uintptr_t)ev->cookie;
        u->read_answers++;
        u->read_err = ev->err;
        CHECK((ev->err == 0) == (ev->block != NULL));
        if (ev->block != NULL)
            CHECK(user_body_is(u, seq, ev->body.data, ev->body.len));
        zc_block_unref(ev->block);
        break;
    }
    case ZC_LOG_MOVE:
        user_move(u, ev);
        break;
    case ZC_LOG_UNUSABLE:
        u->unusable = true;
        CHECK(ev->err < 0 && ev->text != NULL);
        snprintf(u->unusable_text, sizeof(u->unusable_text), "%s", ev->text);
        break;
    }
}

static inline void user_events(struct user *u)
{
    struct zc_log_event ev;
    while (zc_log_event(u->log, &ev))
        user_event(u, &ev);
}

/* Collects requests into the queue; true when there are any. */
static inline bool user_ops(struct user *u)
{
    struct zc_disk_op op;
    while (u->disk.queued < FD_QUEUE && zc_log_op(u->log, u->now, &op)) {
        u->disk.begun[u->disk.queued] = false;
        u->disk.sums[u->disk.queued] = op.kind == ZC_DISK_WRITE ? zc_crc32c(0, op.data, op.len) : 0;
        u->disk.queue[u->disk.queued++] = op;
    }
    return u->disk.queued > 0;
}

/* Carries out queued request i and tells the log. */
static inline void user_complete(struct user *u, int i)
{
    struct zc_disk_op op = u->disk.queue[i];
    bool begun = u->disk.begun[i];
    /* The log leaves the bytes alone until it is told. */
    if (op.kind == ZC_DISK_WRITE)
        CHECK_INT(zc_crc32c(0, op.data, op.len), u->disk.sums[i]);
    u->disk.queue[i] = u->disk.queue[--u->disk.queued];
    u->disk.begun[i] = u->disk.begun[u->disk.queued];
    u->disk.sums[i] = u->disk.sums[u->disk.queued];
    struct zc_disk_completion done = {.id = op.id, .result = fd_do(&u->disk, &op, begun)};
    zc_log_input(u->log, u->now, &done);
}

/* The bytes of queued request i are written, its sync goes on; true when that could be. */
static inline bool user_begin(struct user *u, int i)
{
    const struct zc_disk_op *op = &u->disk.queue[i];
    if (u->disk.begun[i] || !fd_begin(&u->disk, op))
        return false;
    u->disk.begun[i] = true;
    struct zc_disk_completion done = {.id = op->id, .result = (int64_t)op->len, .written = true};
    zc_log_input(u->log, u->now, &done);
    return true;
}

/* One thing happens. False: nothing is left to happen at this time. */
static inline bool user_step(struct user *u)
{
    user_events(u);
    if (!user_ops(u)) {
        user_events(u);
        return user_ops(u);
    }
    int i = (int)(fd_rand(&u->disk) % (uint64_t)u->disk.queued);
    if (!u->steps || fd_rand(&u->disk) % 4 == 0 || !user_begin(u, i))
        user_complete(u, i);
    user_events(u);
    return true;
}

static inline void user_run(struct user *u)
{
    for (int i = 0; i < 1000000; i++)
        if (!user_step(u))
            return;
    CHECK(!"the log never rests");
}

/* Lets time pass to the next deadline, at most ms, and runs. */
static inline void user_wait(struct user *u, int64_t ms)
{
    struct zc_mono end = zc_mono_add_ms(u->now.mono, ms);
    for (int i = 0; i < 100000; i++) {
        user_run(u);
        struct zc_mono at = zc_log_deadline(u->log);
        if (at.ns > end.ns)
            break;
        if (at.ns > u->now.mono.ns)
            u->now.mono = at;
        else
            u->now.mono.ns += ZC_NS_PER_MS;
        zc_log_tick(u->log, u->now);
    }
    u->now.mono = end;
    zc_log_tick(u->log, u->now);
    user_run(u);
}

static inline void user_open_quiet(struct user *u)
{
    static uint32_t numbers[FD_FILES];
    uint32_t count = fd_list(&u->disk, numbers);
    struct zc_log_config config = {.sync = u->sync,
                                   .segment_bytes = u->segment_bytes,
                                   .segments = numbers,
                                   .segments_count = count,
                                   .body_head = u->heads ? user_head : NULL};
    for (uint64_t seq = 0; seq < u->seq_next; seq++)
        u->msgs[seq].known = false;
    u->seq_base = 1;
    u->marks_len = u->marks_synced = 0;
    u->ready = u->closed = u->unusable = false;
    u->disk.spare_reads = true;
    u->synced = u->written = 0;
    u->last_seq = 0;
    u->in_order = true;
    u->states_seen = 0;
    u->state = ZC_LOG_OK;
    u->disk.queued = 0;
    u->log = zc_log_new(&config, &u->rng);
}

static inline void user_open(struct user *u)
{
    user_open_quiet(u);
    user_run(u);
}

static inline void user_init(struct user *u, uint64_t seed)
{
    uint8_t key[32] = {0};
    memcpy(key, &seed, sizeof(seed));
    *u = (struct user){
        .sync = ZC_LOG_SYNC_ALWAYS, .segment_bytes = 65536, .seq_next = 1, .seq_base = 1};
    u->disk.seed = seed;
    u->msgs = calloc(USER_SEQS, sizeof(*u->msgs));
    u->marks = calloc(USER_SEQS, sizeof(*u->marks));
    zc_rng_init(&u->rng, key);
    u->now.mono.ns = 1000;
}

/* The process is gone without a word; the disk stays. */
static inline void user_kill(struct user *u)
{
    zc_log_free(u->log);
    u->log = NULL;
    fd_kill(&u->disk);
}

static inline void user_done(struct user *u)
{
    user_kill(u);
    fd_done(&u->disk);
    free(u->msgs);
    free(u->marks);
}

/* Appends the next message; its seq, or a negative zc_err. */
static inline int64_t user_put(struct user *u)
{
    static uint8_t body[16384];
    uint64_t seq = u->seq_next;
    if (seq >= USER_SEQS)
        abort();
    size_t len = user_body(u, seq, body);
    struct user_msg *m = &u->msgs[seq];
    *m = (struct user_msg){0};
    int64_t ticket =
        zc_log_append(u->log, ZC_RECORD_PUT, seq, zc_slice(body, len), true, &m->place);
    if (ticket < 0)
        return ticket;
    u->seq_next++;
    m->state = U_PENDING;
    m->put_ticket = (uint64_t)ticket;
    return (int64_t)seq;
}

static inline int64_t user_remove(struct user *u, uint64_t seq)
{
    struct user_msg *m = &u->msgs[seq];
    uint8_t body[8];
    for (int i = 0; i < 8; i++)
        body[i] = (uint8_t)(seq >> (8 * i));
    if (m->state != U_LIVE && m->state != U_PENDING)
        abort();
    int64_t ticket = zc_log_append(u->log, ZC_RECORD_REMOVE, 0, zc_slice(body, 8), true, NULL);
    if (ticket < 0)
        return ticket;
    m->was_live = m->state == U_LIVE;
    m->state = U_REMOVING;
    m->remove_ticket = (uint64_t)ticket;
    return 0;
}

/* n messages of which each `every`th stays: the removals are about to be written. */
static inline void user_strew(struct user *u, int n, int every)
{
    uint64_t from = u->seq_next;
    for (int i = 0; i < n; i++) {
        CHECK(user_put(u) > 0);
        if (i % 9 == 0)
            user_run(u);
    }
    user_run(u);
    for (uint64_t seq = from; seq < u->seq_next; seq++)
        if (seq % (uint64_t)every != 0)
            CHECK_INT(user_remove(u, seq), 0);
}

static inline int64_t user_mark(struct user *u, uint64_t seq)
{
    uint8_t body[12] = {1};
    struct user_mark *k = &u->marks[u->marks_len];
    if (u->marks_len == USER_SEQS)
        abort();
    *k = (struct user_mark){.seq = seq};
    int64_t ticket =
        zc_log_append(u->log, ZC_RECORD_STATE, seq, zc_slice(body, 12), false, &k->place);
    if (ticket > 0) {
        k->ticket = (uint64_t)ticket;
        u->marks_len++;
    }
    return ticket;
}

static inline void user_close(struct user *u)
{
    zc_log_close(u->log, u->now);
    user_run(u);
    CHECK(u->closed);
    user_kill(u);
}

static inline uint64_t user_live(struct user *u)
{
    uint64_t n = 0;
    for (uint64_t seq = 1; seq < u->seq_next; seq++)
        n += u->msgs[seq].state == U_LIVE;
    return n;
}

static inline struct zc_log_status user_status(struct user *u)
{
    struct zc_log_status st;
    zc_log_status(u->log, &st);
    return st;
}

static inline uint64_t user_live_bytes(struct user *u)
{
    uint64_t sum = 0;
    for (uint64_t seq = 1; seq < u->seq_next; seq++)
        if (u->msgs[seq].state == U_LIVE)
            sum += zc_record_size(user_len(u, seq));
    return sum;
}

/* Every live message can be read back where its place says. */
static inline void user_check_readable(struct user *u)
{
    for (uint64_t seq = 1; seq < u->seq_next; seq++) {
        if (u->msgs[seq].state != U_LIVE)
            continue;
        int err = zc_log_read(u->log, u->msgs[seq].place, user_len(u, seq), (void *)(uintptr_t)seq);
        CHECK_INT(err, 0);
        user_run(u);
        CHECK_INT(u->read_err, 0);
    }
}

#endif
