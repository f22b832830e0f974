/*
 * The inside of a hub, shared by hub.c (sessions, time, events) and hub_store.c (the log under the
 * broker).
 */
#ifndef ZC_NODE_HUB_PRIV_H
#define ZC_NODE_HUB_PRIV_H

#include "node/hub.h"
#include "zmqc/broker.h"

struct zc_hub_tunnel;

struct zc_hub {
    struct zc_hub_config config;
    struct zc_broker *broker;
    struct zc_log *log;           /* NULL: memory only */
    struct zc_hub_tunnel *tunnel; /* NULL: none */
    struct zc_rng rng;
    struct zc_journal journal;
    struct zc_mono stop_at;  /* sessions are cut */
    struct zc_mono close_at; /* the log is closed */
    bool ready, ready_told, unusable, unusable_told;
    bool stopping, closing, stopped, stopped_told;
    const char *unusable_text;
    int unusable_err;
    const char *note; /* a line about the storage */
    enum zc_hub_level note_level;
    enum zc_log_state state_told;
    uint64_t failures_told;
};

/* Connects the broker to the log. */
void zc_hub_store_init(struct zc_hub *hub);
/* Carries what the log has to say to the broker, until it is quiet. */
void zc_hub_store_pump(struct zc_hub *hub, struct zc_now now);

#endif
