/*
 * libzmqcat: a client of the zmqcat bus.
 *
 * Blocking calls over one connection; not thread-safe, use one connection a thread. Heartbeats of
 * the hub are answered inside every call that reads; a program that works longer than 15 s between
 * calls holds a lease (the hub waits for it) or calls zmqcat_poll. Deliveries of subscriptions that
 * come while another call waits for its answer are kept for zmqcat_next, at most 4,096 or 64 MiB;
 * beyond that they are lost and counted (zmqcat_dropped). zmqcat_poll stops reading instead.
 *
 * Calls return 0 or a negative enum zmqcat_error; zmqcat_error_text tells why in one line.
 */
#ifndef ZMQCAT_H
#define ZMQCAT_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ZMQCAT_PUBLIC __attribute__((visibility("default")))

struct zmqcat; /* one connection */

enum zmqcat_error {
    ZMQCAT_OK = 0,
    ZMQCAT_FAILED = -1,   /* the system refused: see zmqcat_error_text */
    ZMQCAT_USAGE = -2,    /* an argument is unusable */
    ZMQCAT_TIMEOUT = -3,  /* nothing within the time asked for, or `mailbox: empty` */
    ZMQCAT_REFUSED = -4,  /* err from the hub with code full, denied or unroutable */
    ZMQCAT_CLOSED = -5,   /* the hub closed the connection, or `mailbox: closed` */
    ZMQCAT_PROTOCOL = -6, /* the other side broke the protocol */
    ZMQCAT_ERR = -7,      /* any other err from the hub */
    ZMQCAT_FULL = -8,     /* zmqcat_poll: no more deliveries can be kept, call zmqcat_next */
    ZMQCAT_STOPPED = -9,  /* the caller's own poll gave up: see zmqcat_open_polled */
};

struct zmqcat_header {
    const char *key; /* UTF-8, may hold NUL: use the lengths */
    size_t key_len;
    const char *value;
    size_t value_len;
};

/* A message as received. Valid until the next call on the connection. Strings are not
 * NUL-terminated: use the lengths. */
struct zmqcat_msg {
    const char *op; /* "msg", "rep", … */
    size_t op_len;
    const char *id;
    size_t id_len;
    const char *name;
    size_t name_len;
    const char *from;
    size_t from_len;
    const char *by; /* authenticated sender, or empty */
    size_t by_len;
    const void *payload;
    size_t payload_len;
    const char *delivery; /* reserve, ready */
    size_t delivery_len;
    int64_t lease;   /* unix second at which the lease ends, 0 if none */
    int64_t attempt; /* 1 for the first delivery, 0 if unknown */
    int64_t at_ms;   /* unix ms of acceptance, 0 if unknown */
    bool end;        /* last of a batch */
    bool peek;       /* only shown: see zmqcat_peek */
    const struct zmqcat_header *headers;
    size_t headers_count;
};

struct zmqcat_put_options {
    const char *id; /* NULL: none */
    const struct zmqcat_header *headers;
    size_t headers_count;
    int64_t delay_ms; /* 0: visible at once */
    int64_t ttl_ms;   /* 0: never expires */
    bool if_consumer; /* put: ZMQCAT_REFUSED (code unroutable) when nobody waits or works there */
};

/* Connects. address: "unix:///path", "/path", "./path", "tcp://host:port", "host:port",
 * "[::1]:port", or NULL for the default (ZMQCAT_LISTEN, else the system and user sockets, whose
 * listener must be root, the caller or the user zmqcat). name: sent in hello, NULL for the host
 * name. On failure *ret_bus is a closed connection that only carries the error text (free it), or
 * NULL. */
ZMQCAT_PUBLIC int zmqcat_open(const char *address, const char *name, struct zmqcat **ret_bus);
/* The same, but ZMQCAT_TIMEOUT when the hub takes the connection and does not answer in this time
 * (negative, and zmqcat_open: ZMQCAT_FAILED after a minute, because a spoke holds its clients for a
 * while). */
ZMQCAT_PUBLIC int zmqcat_open_within(const char *address, const char *name, int64_t timeout_ms,
                                     struct zmqcat **ret_bus);
/* Called on a connection wherever it waits, instead of poll(2): hub is its socket, one entry, and
 * timeout_ms how long at most, -1 for ever. It may wait for other things too and see to them, but
 * makes no call on that connection. Returns as poll does, 0 also before the time is over; or -1
 * with errno ECANCELED to give up. The call then ends with ZMQCAT_STOPPED: the hub may do what was
 * asked all the same, and the connection is closed where its answer could not be told later. */
typedef int zmqcat_poll_fn(void *data, struct pollfd *hub, int timeout_ms);
/* As zmqcat_open_within; poll (NULL: poll(2)) is called with data from the first wait on. */
ZMQCAT_PUBLIC int zmqcat_open_polled(const char *address, const char *name, int64_t timeout_ms,
                                     zmqcat_poll_fn *poll, void *data, struct zmqcat **ret_bus);
/* The administrator's socket of a hub: only zmqcat_query works there. control: its address, or NULL
 * for the one that belongs to the bus at `listen` (NULL: the default as above). */
ZMQCAT_PUBLIC int zmqcat_open_control(const char *control, const char *listen,
                                      struct zmqcat **ret_bus);
/* The same with a poll of the caller's. */
ZMQCAT_PUBLIC int zmqcat_open_control_polled(const char *control, const char *listen,
                                             zmqcat_poll_fn *poll, void *data,
                                             struct zmqcat **ret_bus);
ZMQCAT_PUBLIC void zmqcat_free(struct zmqcat *bus);
/* Says anew who this is. name: NULL for the host name. scope, not NULL: ids of puts mean the same
 * in every connection of this user with this scope, across reconnects and restarts of the hub, and
 * so do leases until they end. A scope must be given before the first put, and stays. */
ZMQCAT_PUBLIC int zmqcat_hello(struct zmqcat *bus, const char *name, const char *scope);
/* For each later sub, reserve and ready of this connection: a comma list over `from`, see zmqc(5).
 * NULL: none. Copied. */
ZMQCAT_PUBLIC int zmqcat_set_filter(struct zmqcat *bus, const char *filter);
/* One line: what failed and why. Never NULL. */
ZMQCAT_PUBLIC const char *zmqcat_error_text(const struct zmqcat *bus);
/* `code` of the last err frame ("full", "denied", …), or "". */
ZMQCAT_PUBLIC const char *zmqcat_error_code(const struct zmqcat *bus);
/* The socket, to poll for reading. Call zmqcat_poll before and after: what an earlier call has read
 * already does not show there. */
ZMQCAT_PUBLIC int zmqcat_fd(const struct zmqcat *bus);
/* Where the connection leads, as an address. */
ZMQCAT_PUBLIC const char *zmqcat_address(const struct zmqcat *bus);
/* What the search for the default socket had to skip and why, in one line, or "". */
ZMQCAT_PUBLIC const char *zmqcat_warning(const struct zmqcat *bus);
/* Deliveries of subscriptions that were lost because too many had been kept. */
ZMQCAT_PUBLIC uint64_t zmqcat_dropped(const struct zmqcat *bus);

ZMQCAT_PUBLIC int zmqcat_put(struct zmqcat *bus, const char *name, size_t name_len,
                             const void *payload, size_t len,
                             const struct zmqcat_put_options *options);
/* wait_ms < 0: for ever. ZMQCAT_USAGE on a connection with a subscription, whose deliveries look
 * like what is taken: use a second connection. */
ZMQCAT_PUBLIC int zmqcat_take(struct zmqcat *bus, const char *name, size_t name_len,
                              int64_t wait_ms, struct zmqcat_msg *ret_msg);
/* Sends a put (options->id must be NULL) and returns at once, so that many are under way. Their
 * answers come in their order: zmqcat_put_finish gives that of the oldest, or ZMQCAT_TIMEOUT with
 * an empty zmqcat_error_code when it has not come within wait_ms. Until all answers were given, no
 * other call may be made on the connection. */
ZMQCAT_PUBLIC int zmqcat_put_start(struct zmqcat *bus, const char *name, size_t name_len,
                                   const void *payload, size_t len,
                                   const struct zmqcat_put_options *options);
ZMQCAT_PUBLIC int zmqcat_put_finish(struct zmqcat *bus, int64_t wait_ms);
/* Asks for one message with op `take`, `reserve` or `ready` and returns at once; may be repeated.
 * What comes of it is given by zmqcat_next: the message, or an error of the hub with its
 * zmqcat_error_code (`empty` when wait_ms was over). Other calls may be made meanwhile, but not
 * zmqcat_take, zmqcat_reserve, zmqcat_ready, and no subscription. lease_s, wait_ms: as below. */
ZMQCAT_PUBLIC int zmqcat_ask(struct zmqcat *bus, const char *op, const char *name, size_t name_len,
                             int64_t lease_s, int64_t wait_ms);
/* lease_s <= 0: the hub's default. */
ZMQCAT_PUBLIC int zmqcat_reserve(struct zmqcat *bus, const char *name, size_t name_len,
                                 int64_t lease_s, int64_t wait_ms, struct zmqcat_msg *ret_msg);
ZMQCAT_PUBLIC int zmqcat_ready(struct zmqcat *bus, const char *name, size_t name_len,
                               int64_t wait_ms, struct zmqcat_msg *ret_msg);
ZMQCAT_PUBLIC int zmqcat_ack(struct zmqcat *bus, const char *delivery, size_t len);
/* delay_ms 0: visible again at once. */
ZMQCAT_PUBLIC int zmqcat_nack(struct zmqcat *bus, const char *delivery, size_t len,
                              int64_t delay_ms);
/* Extends the lease; *ret_lease (may be NULL) gets the unix second at which it ends. */
ZMQCAT_PUBLIC int zmqcat_touch(struct zmqcat *bus, const char *delivery, size_t len,
                               int64_t lease_s, int64_t *ret_lease);
/* Answers the request whose message id was received. */
ZMQCAT_PUBLIC int zmqcat_rep(struct zmqcat *bus, const char *id, size_t id_len, const char *name,
                             size_t name_len, const void *payload, size_t len);
/* One attempt with this id; a retry with the same id is not queued twice. */
ZMQCAT_PUBLIC int zmqcat_req(struct zmqcat *bus, const char *id, const char *name, size_t name_len,
                             const void *payload, size_t len, int64_t timeout_ms,
                             struct zmqcat_msg *ret_msg);
/* *ret_subs (may be NULL): sessions that had a matching subscription. */
ZMQCAT_PUBLIC int zmqcat_pub(struct zmqcat *bus, const char *topic, size_t topic_len,
                             const void *payload, size_t len,
                             const struct zmqcat_put_options *options, int64_t *ret_subs);
ZMQCAT_PUBLIC int zmqcat_sub(struct zmqcat *bus, const char *prefix, size_t prefix_len);
/* Without the last values: only what is published from now on. A hub of the first protocol sends
 * them all the same. */
ZMQCAT_PUBLIC int zmqcat_sub_new(struct zmqcat *bus, const char *prefix, size_t prefix_len);
/* Ends all subscriptions; deliveries that were kept are dropped. */
ZMQCAT_PUBLIC int zmqcat_unsub(struct zmqcat *bus);
/* Next delivery of a subscription, or what came of a zmqcat_ask. wait_ms < 0: for ever. */
ZMQCAT_PUBLIC int zmqcat_next(struct zmqcat *bus, int64_t wait_ms, struct zmqcat_msg *ret_msg);
ZMQCAT_PUBLIC int zmqcat_ping(struct zmqcat *bus, int64_t wait_ms);

/* Looks at what would be given next and takes nothing. max 0: one message; 1 to 1,024: so many, the
 * first is returned here and each other by zmqcat_peek_next until one has `end`, with no other call
 * in between. ZMQCAT_TIMEOUT with the code `empty`: the mailbox is empty. */
ZMQCAT_PUBLIC int zmqcat_peek(struct zmqcat *bus, const char *name, size_t name_len, int max,
                              struct zmqcat_msg *ret_msg);
ZMQCAT_PUBLIC int zmqcat_peek_next(struct zmqcat *bus, struct zmqcat_msg *ret_msg);
/* Removes all that is queued or delayed, not what is leased; *ret_count (may be NULL) gets how many
 * these were. */
ZMQCAT_PUBLIC int zmqcat_purge(struct zmqcat *bus, const char *name, size_t name_len,
                               int64_t *ret_count);
/* Moves up to max messages (0: all) of one mailbox to another, until that one is full; *ret_count
 * (may be NULL) gets how many. */
ZMQCAT_PUBLIC int zmqcat_move(struct zmqcat *bus, const char *from, size_t from_len, const char *to,
                              size_t to_len, int max, int64_t *ret_count);
/* Each publication whose topic begins with prefix is put into the mailbox too, until unbind. */
ZMQCAT_PUBLIC int zmqcat_bind(struct zmqcat *bus, const char *name, size_t name_len,
                              const char *prefix, size_t prefix_len);
ZMQCAT_PUBLIC int zmqcat_unbind(struct zmqcat *bus, const char *name, size_t name_len,
                                const char *prefix, size_t prefix_len);
/* stat (name NULL: the sums), list, info and the control verbs: *ret_json is the `result` object as
 * JSON text, valid until the next call. name may be NULL. extra: further JSON members such as
 * "\"max\":1000", or NULL. */
ZMQCAT_PUBLIC int zmqcat_query(struct zmqcat *bus, const char *op, const char *name,
                               size_t name_len, const char *extra, const char **ret_json,
                               size_t *ret_len);
/* Reads what is there without waiting and answers heartbeats. Must be called, or zmqcat_next, at
 * least every 15 s by a program that holds no lease. */
ZMQCAT_PUBLIC int zmqcat_poll(struct zmqcat *bus);

#ifdef __cplusplus
}
#endif

#endif
