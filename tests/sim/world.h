/*
 * What the files of the simulator share: one seed's world with a hub, a disk, clients and the naive
 * model that says what the hub may do.
 *
 * The model sees two streams of each session: requests at the instant their last byte is given to
 * the hub, and frames at the instant the "kernel" accepted their last byte (zc_hub_sent). What lies
 * between is unknown to it, so every check is stated with what is certain: a message may be in the
 * hands of a waiter whose frame has not left yet. Time is in nanoseconds of the monotonic clock;
 * `idx` counts model events and orders what happens at one instant.
 */
#ifndef ZC_TESTS_SIM_WORLD_H
#define ZC_TESTS_SIM_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/time.h"
#include "disk.h"
#include "node/hub.h"
#include "profile.h"
#include "rnd.h"
#include "zmqc/msg.h"

#define MS INT64_C(1000000)
#define SECOND INT64_C(1000000000)
#define NEVER INT64_MAX
#define DELAY_MAX (5 * SECOND) /* most that a put or nack of ours delays */
#define BOXES_MAX 4
#define TOPICS 5
#define CLIENTS_MAX 8
#define SENDERS 4
#define CONNS_MAX 4096
#define MESSAGES_MAX 12000
#define DELIVERIES_MAX 60000
#define PUBS_MAX 8000
#define ITEMS_MAX 900 /* less than a mailbox may hold */
#define GROUPS_MAX 4096

enum op {
    OP_PUT,
    OP_TAKE,
    OP_RESERVE,
    OP_READY,
    OP_ACK,
    OP_NACK,
    OP_TOUCH,
    OP_REQ,
    OP_REP,
    OP_PUB,
    OP_SUB,
    OP_UNSUB,
    OP_PING,
    OP_HELLO,
    OP_INFO,    /* stat, list and info: answered ok with a result */
    OP_WRONG,   /* a sound frame that must get an err with code `want_code` */
    OP_GARBAGE, /* breaks the rules of the frame: the session must end */
    OP_PONG,    /* answer to the hub's ping; no answer to it */
    OP_OPERATE  /* operate.c: `target` says which */
};

/* One request of a client, from its planning until its answer. */
struct want {
    enum op op;
    char id[40];
    int box;          /* mailbox, or topic */
    uint32_t uid;     /* message of put, req, rep; pub number */
    uint32_t target;  /* delivery that ack, nack, touch, rep name; 0: none of the model's */
    uint32_t more[4]; /* the list form names these as well */
    int more_count;
    bool list;
    int64_t wait_ms; /* -1: blocks for good */
    int64_t lease_ms;
    int64_t delay_ms;
    int max, got; /* max 0: not asked */
    const char *want_code;
    uint64_t end; /* stream offset behind its frame */
    uint64_t idx; /* when submitted */
    int64_t at;
    uint32_t passed_by; /* message that went to a later waiter */
    uint32_t unseen_by; /* waiters: a put that found no consumer */
    bool consumer;      /* put: somebody may have waited, or held one, when it came */
    uint8_t sender;     /* hello: the name it gives */
    uint8_t excluded;   /* waiters: bits of the senders that its filter keeps out */
    /* of its mailbox when a put was submitted */
    size_t sure_before, maybe_before;
    uint64_t puts_before;
    uint64_t holds_before; /* of a move or purge; UINT64_MAX: some waited */
};

struct wants {
    struct want *list;
    size_t len, cap;
};

enum put_state { PUT_OPEN, PUT_OK, PUT_REFUSED, PUT_STORAGE };
enum surely { NO, MAYBE, YES };

struct message {
    uint8_t box, sender;
    bool is_req, binary, header;
    bool wants_consumer;
    bool held;       /* by delivery */
    bool half_acked; /* an ack of it was answered err storage */
    bool vouched;    /* must be there although it got no ok: a duplicate of it did, or the like */
    bool maybe_lost; /* a crash may have lost it with a take */
    bool power_lost; /* since its last delivery: attempt may be lower */
    bool delayed;    /* by its put or a nack, at any time */
    bool crossed;    /* lived through a restart of the hub */
    bool has_over;   /* a ttl was given */
    enum put_state put;
    enum surely gone; /* YES: must never be delivered */
    enum surely dup;
    uint32_t dup_of;
    uint32_t size, conn;
    char id[24];
    uint64_t submit_idx, ok_idx;
    int64_t submit_at, ok_at;
    int64_t due_at;                /* not before */
    int64_t delay_ms, ttl_ms;      /* of the request; ttl -1: none */
    int64_t over_at, over_late_at; /* ttl: dropped between these */
    int64_t gone_at;
    int64_t avail_at;  /* latest instant at which it came (back) to its queue */
    uint32_t delivery; /* the last one seen */
    int64_t attempt;
    uint32_t seen, unseen; /* deliveries: observed, and at most so many that were not */
    uint64_t wire_hash;
    char wire_id[40];
    uint32_t reps_got;
    bool guessed; /* a session that may just have been given it named its id */
    bool rep_due; /* a worker that held it was told ok for its rep */
};

struct delivery {
    char name[40]; /* "" for a take */
    uint32_t message, conn;
    uint64_t idx;
    int64_t from_at, at;          /* handed out between these */
    int64_t lease_min, lease_max; /* the lease ends between these */
    bool take;
    uint8_t excluded; /* senders that its waiter did not want */
    uint32_t acks;    /* acks and reps for it under way */
    bool over;        /* acked, nacked, superseded or its session ended */
    bool releasing;   /* nack under way */
    bool doubtful;    /* lease may have been over when the frame left */
};

/* What operate.c puts, once or more. */
struct item {
    int client;
    uint8_t box;
    bool published; /* through a binding */
    bool sure;      /* acknowledged */
    bool never;     /* published while surely nothing was bound */
    bool taken;
    bool gone;         /* purged, as its purge and nobody else can have it: never seen again */
    uint8_t where;     /* mailboxes in which it may lie, as bits */
    uint64_t purge_at; /* first purge that may have removed it, by its idx; 0: none */
    uint64_t gone_idx;
    uint64_t submit_idx, ok_idx;
    int64_t submit_at;
    /* leases, see hold.c */
    char delivery[40];
    int holder;      /* the client that had it last */
    uint32_t holds;  /* tells its deliveries apart */
    uint32_t ending; /* acks and nacks of the last one that are under way */
    bool held;
    bool loose;      /* it was given back or delayed: it stands anywhere */
    bool maybe_gone; /* an ack of it has no answer */
    uint64_t held_idx, taken_idx;
    int64_t lease_min, lease_max; /* the last lease ends between these; 0: there is none */
    int64_t back_at;              /* the last time that it was given back, as was seen */
    int64_t delay_ms, due_at;     /* of its put; not before, in this life of the hub */
    uint64_t due_life, due_idx;   /* since when that is so */
    int64_t wall_moved;           /* what w->wall_moved was when it was put */
};

struct pub {
    uint8_t topic;
    uint32_t conn;
    int client;
    uint64_t submit_idx, ok_idx;
};

/* A publication that a subscriber should get. */
struct expected {
    uint32_t pub;
    uint32_t taken; /* the subscriber's count of deliveries when it was submitted */
    uint32_t room;  /* most deliveries that can have waited before it */
    bool tight;     /* its output may have been full in bytes */
    bool known;     /* its publisher was told ok: room is final */
};

struct conn {
    struct zc_session *session; /* NULL once detached */
    uint32_t number;            /* index in the world */
    int client;
    uint8_t sender; /* its name, as the last hello that was made says */
    /* client to hub */
    struct zc_buf in;
    uint64_t given;    /* stream bytes given to the hub */
    uint64_t made;     /* stream bytes made */
    uint64_t gave_idx; /* requests with a higher idx were given to the hub at once, just now */
    struct wants plans;
    bool scoped;  /* hello with a scope was sent */
    bool reading; /* the hub wants input */
    bool eof_soon, eof_done;
    /* hub to client */
    struct zc_buf out; /* accepted bytes that are no whole frame yet */
    size_t kernel, kernel_cap;
    bool flagged, blocked, never_reads, deaf; /* deaf: answers no ping */
    int64_t progress_at,
        blocked_at;    /* last acceptance; last instant at which output was left over */
    int64_t paused_at; /* last instant at which the hub wanted no input */
    int64_t heard_at;  /* last whole frame given to the hub */
    bool saw_bad_frame;
    uint32_t cause; /* CAUSE_: why the hub may end it */
    bool given_up;  /* the hub closed it or we reset it */
    struct wants wants;
    int64_t next_act_at, next_in_at, next_read_at;
    /* subscriptions */
    uint64_t sub_maybe[TOPICS];  /* idx from which on it may be subscribed, 0: is not */
    uint64_t sub_sure[TOPICS];   /* idx from which on it surely is */
    uint64_t sub_idx[TOPICS][8]; /* the last sub requests that match */
    uint32_t sub_count[TOPICS];
    uint32_t last_pub[TOPICS][CLIENTS_MAX], last_copies[TOPICS][CLIENTS_MAX];
    struct expected *expected;
    size_t expected_len, expected_cap;
    uint32_t matched, delivered; /* publications that concern it, and those it got */
    uint32_t replays;            /* last values that it may still get */
};

enum {
    CAUSE_GARBAGE = 1 << 0,
    CAUSE_EOF = 1 << 1,
    CAUSE_SILENT = 1 << 2,
    CAUSE_STALLED = 1 << 3,
    CAUSE_STOP = 1 << 4,
    CAUSE_CROWD = 1 << 5,
    CAUSE_OUTPUT = 1 << 6, /* the output of all sessions has a small bound */
};

struct box {
    char name[16];
    uint32_t *live; /* messages that may be there */
    size_t live_len, live_cap;
    bool disturbed;              /* something unseen may be on its way back */
    int64_t disturbed_at;        /* the last time that was so */
    uint32_t failed_takes;       /* answered err storage since the store last worked */
    uint32_t returning;          /* takes whose session ended since the disk was idle */
    uint64_t take_idx, wait_idx; /* last take, last waiter of any kind submitted */
    uint64_t puts;               /* submitted so far */
};

/* At a crash, `budget` of the messages in it may have been on their way to takes. */
struct group {
    uint64_t idx;
    uint32_t budget;
    uint32_t *members;
    size_t len;
};

struct client {
    uint32_t conn; /* number + 1 of its connection, 0 none */
    int64_t next_connect_at;
    uint32_t serial; /* for ids */
};

enum hub_state { HUB_OPENING, HUB_UP, HUB_STOPPING, HUB_DOWN };

struct world {
    uint64_t seed;
    struct profile p;
    struct rnd rnd;
    struct zc_now now;
    int64_t wall_moved; /* times the wall clock was stepped */
    struct zc_hub *hub;
    enum hub_state state;
    int64_t state_since;
    bool stopped_seen, unusable, stopped_in_error;
    uint64_t faults_before; /* disk faults when this hub started */
    bool calm;              /* settling: no new work, no faults */
    uint32_t segments[DISK_FILES_MAX];
    struct disk disk;
    bool disk_busy;
    int64_t disk_busy_since;
    int64_t fault_at; /* last time a disk request failed */
    struct client clients[CLIENTS_MAX];
    struct conn *conns[CONNS_MAX];
    uint32_t conns_len;
    uint32_t live[CLIENTS_MAX + 4]; /* numbers of attached ones */
    size_t live_len;
    struct box boxes[BOXES_MAX];
    struct message *messages; /* [uid] */
    uint32_t messages_len;
    struct delivery *deliveries; /* [1..] */
    uint32_t deliveries_len;
    struct pub *pubs; /* [1..] */
    uint32_t pubs_len;
    struct item items[ITEMS_MAX]; /* [1..] */
    uint32_t items_len;
    uint64_t items_empty;  /* takes of the drain that found nothing */
    uint64_t bind_changes; /* bind and unbind submitted */
    enum surely bind_state;
    uint64_t sweeps;        /* moves and purges submitted */
    uint64_t lives;         /* of the hub, so far */
    uint64_t holds_asked;   /* waiters of operators submitted */
    int64_t holds_lost_at;  /* one of them lost its session, or failed */
    int64_t sweep_ended_at; /* one that was under way lost its session, or failed */
    uint32_t pubs_dead;     /* numbers up to this were published to an earlier hub */
    uint64_t subs_asked;    /* sub requests submitted */
    struct group groups[GROUPS_MAX];
    size_t groups_len;
    struct zc_msg msg;  /* the frame being looked at */
    struct zc_msg made; /* the frame being made */
    uint8_t *scratch;
    uint64_t idx;
    uint64_t hash;
    uint64_t spins; /* turns at one instant */
    int64_t crash_at, stop_at, weather_at, settle_at;
    uint64_t frames, crashes, losses_allowed;
    uint64_t moved;           /* records that compaction copied */
    uint32_t rots, rots_read; /* bits that turned over; of them found by a reader */
    const char *liar;         /* NULL, or what the --break option names */
    uint64_t lies;
    uint8_t *held_back; /* liar: a frame kept for later */
    size_t held_back_len;
    uint32_t held_back_conn;
    int64_t tick_lag_ns; /* liar: the hub learns the time so much too late */
    bool failed;
    char failure[600];
    struct trace *trace; /* NULL: nobody looks */
};

static inline int64_t world_ns(const struct world *w)
{
    return w->now.mono.ns;
}

/* world.c */
struct world *world_new(uint64_t seed, const char *liar);
void world_free(struct world *w);
/* Notes a violation; the first one counts. */
void world_fail(struct world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
void world_trace(struct world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
void world_hash(struct world *w, const void *data, size_t len);

/* node.c: the hub as its host sees it */
void node_start(struct world *w);
/* Events, output and disk requests until nothing moves. */
void node_pump(struct world *w);
void node_tick(struct world *w);
void node_disk_done(struct world *w);
void node_stop(struct world *w);
/* The hub's process ends without warning. */
void node_crash(struct world *w, bool power_loss);
/* After ZC_HUB_STOPPED: the process exits. */
void node_stopped(struct world *w);

/* conn.c: bytes between a client and the hub */
struct conn *conn_open(struct world *w, int client);
void conn_give(struct world *w, struct conn *c);  /* some bytes to the hub */
void conn_flush(struct world *w, struct conn *c); /* the hub's output to the kernel */
void conn_read(struct world *w, struct conn *c);  /* the client reads some */
void conn_end(struct world *w, struct conn *c);   /* detach */
void conn_free(struct conn *c);
/* Causes that time brings are added. */
void conn_note_causes(struct world *w, struct conn *c);

/* sender.c */
struct zc_slice sender_name(uint8_t sender);
/* One that a hello can give. */
uint8_t sender_any(struct world *w);
/* A filter of c, and bits of the senders that it keeps out. */
struct zc_slice sender_filter(struct world *w, const struct conn *c, uint8_t *ret_excluded);
/* The waiter wants the message. */
bool sender_passes(const struct want *want, const struct message *m);

/* ask.c, ask_lease.c, ask_wrong.c: what clients say */
/* Clears w->made; a request with the next id of the client. */
struct want ask_begin(struct world *w, struct conn *c, enum op op, const char *name);
void ask_lease(struct world *w, struct conn *c, enum op op, const char *name);
void ask_rep(struct world *w, struct conn *c);
void ask_something(struct world *w, struct conn *c);
/* fatal: bytes that end the session; else a frame that gets an err */
void ask_wrong(struct world *w, struct conn *c, bool fatal);
/* Encodes w->made and queues it. */
void ask_send(struct world *w, struct conn *c, struct want *want);
void ask_put(struct world *w, struct conn *c, bool req);
void ask_take(struct world *w, struct conn *c, int box, int64_t wait_ms);
void ask_pong(struct world *w, struct conn *c, struct zc_slice id);
/* Bytes of a payload made from its number. */
size_t ask_payload(const struct message *m, uint32_t uid, uint8_t *ret_data);

#endif
