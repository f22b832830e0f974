/*
 * A whole hub without its sockets and files: sessions with the bus protocol, mailboxes, topics,
 * requests, the durable log and the control verbs. The host moves bytes and disk requests; the
 * simulator does the same with faults.
 */
#ifndef ZC_NODE_HUB_H
#define ZC_NODE_HUB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/time.h"
#include "crypto/secret.h"
#include "store/disk.h"
#include "store/log.h"
#include "tunnel/derpmap.h"
#include "tunnel/stamps.h"

struct zc_hub;
struct zc_session;
struct zc_splice;
struct zc_tunnel;

#define ZC_HUB_BUS_PORT 7 /* of the tunnel: the bus */
#define ZC_HUB_FORWARDS_MAX 64
#define ZC_HUB_TOKEN_MAX 4097 /* with its NUL */

/* The tunnel to the spokes; all is copied. */
struct zc_hub_tunnel_config {
    const struct zc_secret *private_key;  /* the node key */
    const struct zc_secret *psk;          /* NULL: tokens without one, and none is ever made */
    const struct zc_derpmap_node *relays; /* of the home region; may come later */
    uint32_t relays_count;
    uint16_t region_id; /* only told in answers to pings */
    bool allow_on;      /* only the keys of allow get an answer */
    const struct zc_key *allow;
    uint32_t allow_count;
    const uint16_t *forward; /* ports of 127.0.0.1 that spokes may reach */
    uint32_t forward_count;
    uint32_t clients_max; /* 4096 */
    struct zc_stamps_bounds stamps;
};

/* Limits and choices; zc_hub_config_default fills all but the store. */
struct zc_hub_config {
    const char *version;
    int64_t heartbeat_ms;   /* <= 0: off */
    uint64_t payload_max;   /* bytes of a put, req, pub payload; at most 1,400 KiB */
    uint64_t mailbox_cap;   /* messages queued in one mailbox */
    uint64_t sub_buffer;    /* deliveries buffered for a subscriber */
    uint64_t topics_max;    /* last values kept */
    uint64_t headers_max;   /* headers of one message, at most ZC_MSG_HEADERS_CAP */
    uint64_t headers_bytes; /* names plus values */
    uint64_t mailboxes_max;
    uint64_t sessions_max;
    uint64_t session_bytes; /* output bound of one session */
    uint64_t output_bytes;  /* of all together; at least four times that of one */
    uint64_t hot_bytes;     /* durable payloads kept in memory, all mailboxes together */
    uint64_t hot_messages;  /* messages at most that wait with their payload ready in memory */
    bool trace;
    bool durable; /* a log lies under the mailboxes: `log` counts */
    struct zc_log_config log;
    const char *storage_path;                  /* for status; NULL with memory */
    const struct zc_hub_tunnel_config *tunnel; /* NULL: none. Only looked at by zc_hub_new */
};

void zc_hub_config_default(struct zc_hub_config *ret_config);

/* What accept knows of a peer. */
struct zc_peer {
    const char *identity; /* authenticated: "uid:1000", "tcp:127.0.0.1:5"; copied */
    const char *name;     /* default `from`: "@" on a unix socket, "ip:port" on TCP; copied */
    bool control;         /* the administrator's socket: its own verbs, none of the bus */
};

enum zc_hub_event_kind {
    ZC_HUB_READY,    /* the store is recovered; sessions may be attached */
    ZC_HUB_UNUSABLE, /* the store cannot be opened: text, err. Nothing more happens */
    ZC_HUB_OUTPUT,   /* session has output, or wants (no) input anew: call output and wants_input */
    ZC_HUB_CLOSE,    /* session ended; write nothing more, close, then zc_hub_detach */
    ZC_HUB_LOG,      /* a line for the administrator: level, text; host limits its rate */
    ZC_HUB_TRACE,    /* a frame passed: text is the line, escaped */
    ZC_HUB_STOPPED,  /* after zc_hub_stop: all output was given and the log is closed */
    ZC_HUB_ONLINE,   /* logged in to the relay: zc_hub_token may be shown. After each login. Of a
                      * spoke: its hub answers; each time anew */
    /* A new pre-shared key (psk) wants to be saved: do so at once, then zc_hub_psk_saved. */
    ZC_HUB_PSK,
    /* The administrator asks to read the files again: do so at once, then zc_hub_reloaded. */
    ZC_HUB_RELOAD,
    /* Or to shut key out for good: do so at once (zc_tunnel_set_allow), then zc_hub_revoked. */
    ZC_HUB_REVOKE,
    ZC_HUB_STAMPS,        /* store `most` as the ceiling of stamps, then zc_tunnel_stamps_raise */
    ZC_HUB_REFUSED,       /* key asked to come in and is not allowed: a line for the log, no more */
    ZC_HUB_SPLICE_OPEN,   /* splice: connect to 127.0.0.1:port for it, zc_splice_set_data */
    ZC_HUB_SPLICE_OUTPUT, /* splice, data: has output, or wants (no) input anew */
    ZC_HUB_SPLICE_EOF,    /* all output was taken and none comes: shut the write side */
    ZC_HUB_SPLICE_CLOSE,  /* over: close (reset: with a reset), then zc_splice_detach */
};

/* syslog priorities */
enum zc_hub_level { ZC_HUB_ERR = 3, ZC_HUB_WARNING = 4, ZC_HUB_NOTICE = 5, ZC_HUB_INFO = 6 };

struct zc_hub_event {
    enum zc_hub_event_kind kind;
    struct zc_session *session;
    void *data; /* the host's pointer of session or splice */
    struct zc_splice *splice;
    uint16_t port; /* SPLICE_OPEN */
    bool reset;    /* SPLICE_CLOSE */
    const struct zc_secret *psk;
    struct zc_key key;
    struct zc_wall most; /* STAMPS */
    enum zc_hub_level level;
    const char *text; /* valid until the next call of zc_hub_event */
    int err;
};

/* seed: 32 random bytes; the hub's only randomness. NULL when memory is refused. */
struct zc_hub *zc_hub_new(const struct zc_hub_config *config, const uint8_t seed[32],
                          struct zc_now now);
void zc_hub_free(struct zc_hub *hub);

/* Starts a session. data is the host's pointer for it. Over sessions_max the session only carries
 * one err `unavailable` and a close. NULL: no memory; close the connection. */
struct zc_session *zc_hub_attach(struct zc_hub *hub, struct zc_now now, const struct zc_peer *peer,
                                 void *data);
/* The connection is gone: the session gives back all it holds; the pointer is dead after this. */
void zc_hub_detach(struct zc_hub *hub, struct zc_session *s, struct zc_now now);
/* Bytes from the peer; data is overwritten while parsing. All len bytes are consumed (kept where
 * needed). */
void zc_hub_input(struct zc_hub *hub, struct zc_session *s, struct zc_now now, uint8_t *data,
                  size_t len);
/* The peer will send nothing more (half-close). */
void zc_hub_eof(struct zc_hub *hub, struct zc_session *s, struct zc_now now);
/* False: leave the peer's bytes in the kernel until a ZC_HUB_OUTPUT event says otherwise. */
bool zc_hub_wants_input(const struct zc_hub *hub, const struct zc_session *s);
/* Up to cap slices of what is to be sent, without consuming them; valid until the next call on this
 * session. The host sends what the socket takes and reports the bytes with zc_hub_sent. */
void zc_hub_output(struct zc_hub *hub, struct zc_session *s, struct zc_slice *ret_slices,
                   size_t cap, size_t *ret_n);
/* The kernel accepted n bytes of the output. */
void zc_hub_sent(struct zc_hub *hub, struct zc_session *s, struct zc_now now, size_t n);

/* Next disk request; ask after all input of a turn was given (group commit). */
bool zc_hub_disk_op(struct zc_hub *hub, struct zc_now now, struct zc_disk_op *ret_op);
void zc_hub_disk_done(struct zc_hub *hub, struct zc_now now, const struct zc_disk_completion *done);

void zc_hub_tick(struct zc_hub *hub, struct zc_now now);
struct zc_mono zc_hub_deadline(struct zc_hub *hub);
bool zc_hub_event(struct zc_hub *hub, struct zc_now now, struct zc_hub_event *ret_event);
/* Waiters get err `mailbox: closed`, sessions end after their output, leases are given back, the
 * log is closed clean, then ZC_HUB_STOPPED. */
void zc_hub_stop(struct zc_hub *hub, struct zc_now now);

/* The tunnel, for the host's relay connection (tunnel.h, "the relay's stream") and its allow list;
 * NULL when there is none. Its events are the hub's: do not take them. */
struct zc_tunnel *zc_hub_tunnel(struct zc_hub *hub);
/* The join token, naming the relay that is connected or dialled. ZC_EAGAIN: no relay is known yet;
 * ZC_ENOENT: no tunnel. The text is a secret: wipe it. */
ZC_MUST_CHECK int zc_hub_token(struct zc_hub *hub, char ret_text[ZC_HUB_TOKEN_MAX]);
/* The answer to ZC_HUB_PSK; why: it could not be saved (NULL: it was), and the old one stays. With
 * the new one all tunnel sessions end. */
void zc_hub_psk_saved(struct zc_hub *hub, struct zc_now now, const char *why);
/* The answer to ZC_HUB_RELOAD, also when nobody waits for it (SIGHUP); why: something could not be
 * used, and what was there before stays. */
void zc_hub_reloaded(struct zc_hub *hub, struct zc_now now, const char *why);
/* The answer to ZC_HUB_REVOKE; why: it failed, or holds only for now. warning: it is done, but. */
void zc_hub_revoked(struct zc_hub *hub, struct zc_now now, const char *why, const char *warning);

/* What the host met on the way to the relay, as a line that comes back as ZC_HUB_LOG: one limit for
 * all of them, ten at once and then one a minute. Only with a tunnel. */
void zc_hub_say_warning(struct zc_hub *hub, struct zc_now now, const char *text);

/* For STATUS= and tests. */
struct zc_hub_stats {
    uint64_t sessions, mailboxes, queued, leased, delayed, topics, waiters;
    uint64_t puts, takes, acks, redelivered, expired, dropped_subs, damaged;
    uint64_t memory_bytes;                 /* message bodies and queued output held */
    enum zc_log_state storage;             /* ZC_LOG_CLOSED when not durable and no log */
    uint64_t log_bytes, live_bytes, moved; /* of the log, see zc_log_status */
    bool draining;                         /* nothing new is let in until the next start */
};
void zc_hub_stats(const struct zc_hub *hub, struct zc_hub_stats *ret_stats);

#endif
