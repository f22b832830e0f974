/*
 * What the administrator's socket can ask of the node around the broker, beside what the broker
 * knows itself. Filled in by a node that has a tunnel.
 */
#ifndef ZC_ZMQC_ADMIN_H
#define ZC_ZMQC_ADMIN_H

#include <stdbool.h>

#include "base/buf.h"

struct zc_msg;
struct zc_session;

struct zc_admin {
    void *arg;
    /* Appends the `tunnel` object of status. 0 or ZC_ENOMEM. */
    int (*tunnel)(void *arg, struct zc_buf *json);
    /* Answers a verb, now or later. False: not one of its verbs. */
    bool (*verb)(void *arg, struct zc_session *s, const struct zc_msg *m);
};

#endif
