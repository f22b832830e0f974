/*
 * Scopes: what ids and leases belong to when a client asks for more than its session. A scope is an
 * authenticated identity and a text of the client's; its number is a hash of both, the same in
 * every run of every hub, and stands where other ids have the number of the session. Numbers of
 * scopes are 2^63 and above, those of sessions far below.
 *
 * Deliveries of a session that ended stay with its scope until their leases end.
 */
#ifndef ZC_ZMQC_SCOPE_H
#define ZC_ZMQC_SCOPE_H

#include "zmqc/broker.h"

struct zc_scope {
    struct zc_map_node node;   /* b->scopes, by number */
    struct zc_list deliveries; /* of sessions that ended, by in_session */
    uint64_t number;
    uint32_t sessions;
    uint32_t held; /* all deliveries, those of its sessions too */
};

/* The session belongs to that scope from now on. False: no memory. */
bool zc_scope_join(struct zc_broker *b, struct zc_session *s, struct zc_slice text);
/* The session ends, and has no deliveries any more. */
void zc_scope_leave(struct zc_broker *b, struct zc_session *s);
/* The number of the scope that text names for that identity. */
uint64_t zc_scope_number(const char *identity, struct zc_slice text);
/* Frees the scope when neither sessions nor deliveries have it. */
void zc_scope_drop(struct zc_broker *b, struct zc_scope *scope);
/* A message id that belongs to a scope: s<number>:<id>. */
bool zc_scope_owns(struct zc_slice message_id);
/* Gives back what ended sessions hold. */
void zc_scope_end_all(struct zc_broker *b);

#endif
