/* A whole hub without its sockets and files: the broker over the log, see hub.h. */
#include <stdlib.h>

#include "node/hub_priv.h"
#include "node/hub_tunnel.h"

/* Sessions that do not take their last output are cut after this long. */
#define STOP_MS 2000
/* The log is closed after this long, whatever could not be stored again. */
#define CLOSE_MS 4000

/* 0, for a build that tests whether messages at rest are as good as others. */
#ifndef ZC_HUB_HOT_MESSAGES
#define ZC_HUB_HOT_MESSAGES 4096
#endif

void zc_hub_config_default(struct zc_hub_config *ret_config)
{
    *ret_config = (struct zc_hub_config){
        .version = ZC_VERSION,
        .heartbeat_ms = 5000,
        .payload_max = 1048576,
        .mailbox_cap = 1024,
        .sub_buffer = 64,
        .topics_max = 4096,
        .headers_max = 64,
        .headers_bytes = 16384,
        .mailboxes_max = 100000,
        .sessions_max = 20000,
        .session_bytes = 8 << 20,
        .output_bytes = 256 << 20,
        .hot_bytes = 16 << 20,
        .hot_messages = ZC_HUB_HOT_MESSAGES,
        .log = {.sync = ZC_LOG_SYNC_ALWAYS, .segment_bytes = 8 << 20},
    };
}

static struct zc_broker_limits limits_of(const struct zc_hub_config *c)
{
    return (struct zc_broker_limits){
        .heartbeat_ms = c->heartbeat_ms,
        .payload_max = c->payload_max,
        .mailbox_cap = c->mailbox_cap,
        .sub_buffer = c->sub_buffer,
        .topics_max = c->topics_max,
        .headers_max = c->headers_max,
        .headers_bytes = c->headers_bytes,
        .mailboxes_max = c->mailboxes_max,
        .sessions_max = c->sessions_max,
        .session_bytes = c->session_bytes,
        .output_bytes =
            c->output_bytes > 4 * c->session_bytes ? c->output_bytes : 4 * c->session_bytes,
        .hot_bytes = c->hot_bytes,
        .hot_messages = c->hot_messages,
    };
}

struct zc_hub *zc_hub_new(const struct zc_hub_config *config, const uint8_t seed[32],
                          struct zc_now now)
{
    struct zc_hub *hub = calloc(1, sizeof(*hub));
    if (hub == NULL)
        return NULL;
    hub->config = *config;
    hub->stop_at = hub->close_at = ZC_NEVER;
    zc_rng_init(&hub->rng, seed);
    uint8_t broker_seed[32];
    zc_rng_bytes(&hub->rng, broker_seed, sizeof(broker_seed));
    struct zc_broker_limits limits = limits_of(config);
    hub->broker = zc_broker_new(&limits, broker_seed, now);
    if (hub->broker == NULL)
        goto fail;
    hub->broker->version = config->version;
    hub->broker->trace = config->trace;
    hub->ready = !config->durable;
    if (config->durable) {
        hub->config.log.body_head = zc_item_head;
        hub->log = zc_log_new(&hub->config.log, &hub->rng);
        if (hub->log == NULL)
            goto fail;
        zc_hub_store_init(hub);
    }
    hub->config.tunnel = NULL; /* the caller's, and not needed any more */
    if (config->tunnel != NULL && zc_hub_tunnel_init(hub, now, config->tunnel) != 0)
        goto fail;
    return hub;
fail:
    zc_hub_free(hub);
    return NULL;
}

void zc_hub_free(struct zc_hub *hub)
{
    if (hub == NULL)
        return;
    zc_hub_tunnel_done(hub);
    zc_broker_free(hub->broker);
    zc_log_free(hub->log);
    free(hub);
}

struct zc_session *zc_hub_attach(struct zc_hub *hub, struct zc_now now, const struct zc_peer *peer,
                                 void *data)
{
    return zc_broker_attach(hub->broker, now, peer->identity, peer->name, peer->control, data);
}

void zc_hub_detach(struct zc_hub *hub, struct zc_session *s, struct zc_now now)
{
    zc_broker_detach(hub->broker, s, now);
}

void zc_hub_input(struct zc_hub *hub, struct zc_session *s, struct zc_now now, uint8_t *data,
                  size_t len)
{
    zc_broker_input(hub->broker, s, now, data, len);
    if (hub->log != NULL && zc_log_backlogged(hub->log))
        zc_broker_block_input(hub->broker, now, true);
}

void zc_hub_eof(struct zc_hub *hub, struct zc_session *s, struct zc_now now)
{
    zc_broker_eof(hub->broker, s, now);
}

bool zc_hub_wants_input(const struct zc_hub *hub, const struct zc_session *s)
{
    return zc_broker_wants_input(hub->broker, s);
}

void zc_hub_output(struct zc_hub *hub, struct zc_session *s, struct zc_slice *ret_slices,
                   size_t cap, size_t *ret_n)
{
    (void)hub;
    *ret_n = s->state == ZC_SESSION_CLOSED ? 0 : zc_session_slices(s, ret_slices, cap);
}

void zc_hub_sent(struct zc_hub *hub, struct zc_session *s, struct zc_now now, size_t n)
{
    zc_broker_sent(hub->broker, s, now, n);
}

/* Bytes to sync on the loop: more may take long. */
#define INLINE_SYNC_MAX 65536

bool zc_hub_disk_op(struct zc_hub *hub, struct zc_now now, struct zc_disk_op *ret_op)
{
    if (hub->log == NULL || hub->unusable)
        return false;
    if (hub->ready)
        zc_log_seq_note(hub->log, hub->broker->seq_next - 1);
    if (!zc_log_op(hub->log, now, ret_op))
        return false;
    /* On the loop an fsync would stop everybody: it may only stop the one who waits for it. */
    if (ret_op->sync)
        ret_op->inline_ok = hub->broker->sessions_count == 1 && ret_op->len <= INLINE_SYNC_MAX &&
                            hub->config.log.sync == ZC_LOG_SYNC_ALWAYS;
    return true;
}

void zc_hub_disk_done(struct zc_hub *hub, struct zc_now now, const struct zc_disk_completion *done)
{
    zc_log_input(hub->log, now, done);
    zc_hub_store_pump(hub, now);
}

/* All sessions are gone, and what they gave back is stored, if the disk works. */
static bool close_due(const struct zc_hub *hub)
{
    bool late = hub->close_at.ns <= hub->broker->now.mono.ns;
    return hub->stopping && !hub->closing && hub->broker->sessions_count == 0 &&
           (late || (zc_broker_settled(hub->broker) && zc_hub_tunnel_quiet(hub)));
}

void zc_hub_tick(struct zc_hub *hub, struct zc_now now)
{
    if (hub->log != NULL)
        zc_log_tick(hub->log, now);
    zc_hub_store_pump(hub, now);
    zc_hub_tunnel_tick(hub, now);
    if (!hub->ready)
        return;
    zc_broker_tick(hub->broker, now);
    if (hub->stopping && hub->stop_at.ns <= now.mono.ns) {
        hub->stop_at = ZC_NEVER;
        zc_broker_cut(hub->broker);
    }
    if (close_due(hub)) {
        hub->closing = true;
        if (hub->log == NULL)
            hub->stopped = true;
        else
            zc_log_close(hub->log, now);
        zc_hub_store_pump(hub, now);
    }
}

struct zc_mono zc_hub_deadline(struct zc_hub *hub)
{
    if (hub->stopped || hub->unusable)
        return ZC_NEVER;
    struct zc_mono d = zc_mono_min(zc_broker_deadline(hub->broker), hub->stop_at);
    if (hub->stopping && !hub->closing && hub->broker->sessions_count == 0)
        d = zc_mono_min(d, close_due(hub) ? hub->broker->now.mono : hub->close_at);
    d = zc_mono_min(d, zc_hub_tunnel_deadline(hub));
    return hub->log != NULL ? zc_mono_min(d, zc_log_deadline(hub->log)) : d;
}

static bool told_once(bool is, bool *told)
{
    bool due = is && !*told;
    *told = *told || is;
    return due;
}

bool zc_hub_event(struct zc_hub *hub, struct zc_now now, struct zc_hub_event *ret_event)
{
    struct zc_hub_event ev = {.kind = ZC_HUB_LOG};
    zc_hub_store_pump(hub, now);
    if (zc_hub_tunnel_event(hub, now, ret_event))
        return true;
    const struct zc_line *line;
    struct zc_session *s;
    bool close;
    if (hub->note != NULL) {
        ev.level = hub->note_level;
        ev.text = hub->note;
        hub->note = NULL;
    } else if ((line = zc_broker_line(hub->broker)) != NULL) {
        ev.kind = line->trace ? ZC_HUB_TRACE : ZC_HUB_LOG;
        ev.level = (enum zc_hub_level)line->level;
        ev.text = line->text;
    } else if (told_once(hub->unusable, &hub->unusable_told)) {
        ev.kind = ZC_HUB_UNUSABLE;
        ev.err = hub->unusable_err;
        ev.text = hub->unusable_text;
    } else if (told_once(hub->ready, &hub->ready_told)) {
        ev.kind = ZC_HUB_READY;
    } else if ((s = zc_broker_dirty(hub->broker, &close)) != NULL) {
        ev.kind = close ? ZC_HUB_CLOSE : ZC_HUB_OUTPUT;
        ev.session = s;
        ev.data = s->data;
    } else if (told_once(hub->stopped, &hub->stopped_told)) {
        ev.kind = ZC_HUB_STOPPED;
    } else {
        return false;
    }
    *ret_event = ev;
    return true;
}

void zc_hub_stop(struct zc_hub *hub, struct zc_now now)
{
    if (hub->stopping)
        return;
    hub->stopping = true;
    hub->stop_at = zc_mono_add_ms(now.mono, STOP_MS);
    hub->close_at = zc_mono_add_ms(now.mono, CLOSE_MS);
    zc_broker_stop(hub->broker, now);
    if (!hub->ready) /* nothing was promised yet: the log is left as it was found */
        hub->stopped = true;
    zc_hub_tick(hub, now);
}

void zc_hub_stats(const struct zc_hub *hub, struct zc_hub_stats *ret_stats)
{
    const struct zc_broker *b = hub->broker;
    const struct zc_counters *c = &b->count;
    struct zc_hub_stats st = {
        .sessions = b->bus_sessions,
        .mailboxes = b->mailboxes.len,
        .queued = c->queued,
        .leased = c->leased,
        .delayed = c->delayed,
        .topics = b->topics.by_name.len,
        .waiters = b->waiters_count,
        .puts = c->puts,
        .takes = c->takes,
        .acks = c->acks,
        .redelivered = c->redelivered,
        .expired = c->expired,
        .dropped_subs = c->dropped_subs,
        .damaged = c->damaged,
        .memory_bytes = b->hot_bytes + b->topics.bytes + b->out_bytes,
        .storage = ZC_LOG_CLOSED,
        .draining = b->draining,
    };
    for (struct zc_list *l = b->sessions.next; l != &b->sessions; l = l->next) {
        const struct zc_session *s = ZC_CONTAINER(l, struct zc_session, link);
        st.memory_bytes += s->in.cap;
    }
    if (hub->log != NULL) {
        struct zc_log_status ls;
        zc_log_status(hub->log, &ls);
        st.storage = ls.state;
        st.log_bytes = ls.bytes;
        st.live_bytes = ls.live_bytes;
        st.moved = ls.moved;
    }
    *ret_stats = st;
}
