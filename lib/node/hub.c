/* A whole hub without its sockets and files: the broker over the log, see hub.h. */
#include "node/hub.h"

#include <stdlib.h>

#include "base/json.h"
#include "zmqc/broker.h"

/* Sessions that do not take their last output are cut after this long. */
#define STOP_MS 2000

struct zc_hub {
    struct zc_hub_config config;
    struct zc_broker *broker;
    struct zc_log *log; /* NULL: memory only */
    struct zc_rng rng;
    struct zc_journal journal;
    struct zc_mono stop_at; /* sessions are cut */
    bool ready, ready_told, unusable, unusable_told;
    bool stopping, closing, stopped, stopped_told;
    const char *unusable_text;
    int unusable_err;
    const char *note; /* a line about the storage */
    enum zc_hub_level note_level;
    enum zc_log_state state_told;
};

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
        .hot_bytes = 16 << 20,
        .log = {.sync = ZC_LOG_SYNC_ALWAYS, .segment_bytes = 8 << 20},
    };
}

static int64_t journal_append(void *arg, enum zc_journal_kind kind, uint64_t seq,
                              struct zc_slice body, bool sync_wanted, uint64_t *place)
{
    static const enum zc_record_type types[] = {ZC_RECORD_PUT, ZC_RECORD_REMOVE, ZC_RECORD_STATE};
    struct zc_hub *hub = arg;
    return zc_log_append(hub->log, types[kind], seq, body, sync_wanted, place);
}

static int journal_read(void *arg, uint64_t place, size_t body_len, void *cookie)
{
    struct zc_hub *hub = arg;
    return zc_log_read(hub->log, place, body_len, cookie);
}

static void journal_forget(void *arg, uint64_t place)
{
    struct zc_hub *hub = arg;
    zc_log_forget(hub->log, place);
}

static const char *state_text(enum zc_log_state state)
{
    static const char *const texts[] = {"opening", "ok", "full", "error", "closed"};
    return texts[state];
}

static int put_number(struct zc_buf *j, const char *head, uint64_t value)
{
    int err = zc_json_put_raw(j, head);
    return err != 0 ? err : zc_json_put_int(j, (int64_t)value);
}

static int journal_status(void *arg, struct zc_buf *json)
{
    struct zc_hub *hub = arg;
    struct zc_log_status st;
    zc_log_status(hub->log, &st);
    int err = zc_json_put_raw(json, "{\"state\":\"");
    if (err == 0)
        err = zc_json_put_raw(json, state_text(st.state));
    if (err == 0)
        err = zc_json_put_raw(json, "\",\"path\":");
    if (err == 0)
        err = zc_json_put_string(json, zc_slice_str(hub->config.storage_path));
    const struct {
        const char *head;
        uint64_t value;
    } rows[] = {{",\"bytes\":", st.bytes},           {",\"segments\":", st.segments},
                {",\"set_aside\":", st.damaged},     {",\"set_aside_bytes\":", st.damaged_bytes},
                {",\"torn_bytes\":", st.torn_bytes}, {",\"syncs\":", st.syncs}};
    for (size_t i = 0; err == 0 && i < ZC_ARRAY_LEN(rows); i++)
        err = put_number(json, rows[i].head, rows[i].value);
    if (err == 0 && st.last_err != 0) {
        err = zc_json_put_raw(json, ",\"last_error\":");
        if (err == 0)
            err = zc_json_put_string(json, zc_slice_str(zc_err_text(st.last_err)));
        if (err == 0)
            err = put_number(json, ",\"last_error_segment\":", st.last_err_segment);
    }
    return err != 0 ? err : zc_json_put_raw(json, "}");
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
        .hot_bytes = c->hot_bytes,
    };
}

struct zc_hub *zc_hub_new(const struct zc_hub_config *config, const uint8_t seed[32],
                          struct zc_now now)
{
    struct zc_hub *hub = calloc(1, sizeof(*hub));
    if (hub == NULL)
        return NULL;
    hub->config = *config;
    hub->stop_at = ZC_NEVER;
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
        hub->log = zc_log_new(&config->log, &hub->rng);
        if (hub->log == NULL)
            goto fail;
        hub->journal =
            (struct zc_journal){hub, journal_append, journal_read, journal_forget, journal_status};
        hub->broker->journal = &hub->journal;
    }
    return hub;
fail:
    zc_hub_free(hub);
    return NULL;
}

void zc_hub_free(struct zc_hub *hub)
{
    if (hub == NULL)
        return;
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

/* A line for the log about a change of the storage's state. */
static void note_state(struct zc_hub *hub)
{
    struct zc_log_status st;
    zc_log_status(hub->log, &st);
    if (st.state == hub->state_told)
        return;
    bool was_bad = hub->state_told == ZC_LOG_FULL || hub->state_told == ZC_LOG_ERROR;
    hub->state_told = st.state;
    hub->note_level = ZC_HUB_ERR;
    if (st.state == ZC_LOG_FULL) {
        hub->note = "storage: the disk is full: puts are refused, takes go on; free some space";
    } else if (st.state == ZC_LOG_ERROR) {
        hub->note = "storage: writing failed: puts, takes and acks are refused until it works; "
                    "check the disk";
    } else if (st.state == ZC_LOG_OK && was_bad) {
        hub->note_level = ZC_HUB_NOTICE;
        hub->note = "storage: works again";
    }
    if (st.state == ZC_LOG_CLOSED && hub->closing)
        hub->stopped = true;
}

static uint64_t little(const uint8_t *p, size_t n)
{
    uint64_t v = 0;
    for (size_t i = n; i > 0; i--)
        v = v << 8 | p[i - 1];
    return v;
}

/* One surviving record while the log opens. */
static void restore(struct zc_hub *hub, const struct zc_log_event *ev)
{
    struct zc_broker *b = hub->broker;
    int err = 0;
    if (ev->type == ZC_RECORD_PUT) {
        err = zc_broker_restore_put(b, ev->seq, ev->body, ev->place);
    } else if (ev->type == ZC_RECORD_REMOVE) {
        for (size_t i = 0; i + 8 <= ev->body.len; i += 8)
            zc_broker_restore_remove(b, little(ev->body.data + i, 8));
    } else if (ev->type == ZC_RECORD_STATE && ev->body.len == 12) {
        zc_broker_restore_state(b, ev->seq, (uint32_t)little(ev->body.data, 4),
                                (int64_t)little(ev->body.data + 4, 8));
    }
    if (err == ZC_EBADMSG) {
        b->count.damaged++;
        zc_broker_log(b, ZC_HUB_ERR, NULL, "a stored message cannot be understood and is left");
    } else if (err != 0) {
        hub->unusable = true;
        hub->unusable_err = err;
        hub->unusable_text = "not enough memory for the stored messages";
    }
}

static void log_event(struct zc_hub *hub, struct zc_now now, const struct zc_log_event *ev)
{
    struct zc_broker *b = hub->broker;
    switch (ev->kind) {
    case ZC_LOG_RECORD:
        restore(hub, ev);
        break;
    case ZC_LOG_READY:
        zc_broker_restored(b, now, zc_log_seq_max(hub->log));
        hub->ready = true;
        note_state(hub);
        break;
    case ZC_LOG_WRITTEN:
        zc_broker_written(b, now, ev->ticket);
        break;
    case ZC_LOG_SYNCED:
        zc_broker_synced(b, now, ev->ticket);
        break;
    case ZC_LOG_FAILED:
        zc_broker_failed(b, now, ev->ticket);
        break;
    case ZC_LOG_STATE:
        note_state(hub);
        break;
    case ZC_LOG_READ:
        zc_broker_read_done(b, now, ev->cookie, ev->block);
        break;
    case ZC_LOG_UNUSABLE:
        hub->unusable = true;
        hub->unusable_err = ev->err;
        hub->unusable_text = ev->text;
        break;
    }
}

/* Carries what the log has to say to the broker; the broker may append anew, so until it is quiet.
 */
static void pump_log(struct zc_hub *hub, struct zc_now now)
{
    struct zc_log_event ev;
    while (hub->log != NULL && !hub->unusable && zc_log_event(hub->log, &ev))
        log_event(hub, now, &ev);
    if (hub->log != NULL)
        zc_broker_block_input(hub->broker, now, zc_log_backlogged(hub->log));
}

bool zc_hub_disk_op(struct zc_hub *hub, struct zc_now now, struct zc_disk_op *ret_op)
{
    if (hub->log == NULL || hub->unusable)
        return false;
    if (hub->ready)
        zc_log_seq_note(hub->log, hub->broker->seq_next - 1);
    return zc_log_op(hub->log, now, ret_op);
}

void zc_hub_disk_done(struct zc_hub *hub, struct zc_now now, const struct zc_disk_completion *done)
{
    zc_log_input(hub->log, now, done);
    pump_log(hub, now);
}

void zc_hub_tick(struct zc_hub *hub, struct zc_now now)
{
    if (hub->log != NULL)
        zc_log_tick(hub->log, now);
    pump_log(hub, now);
    if (!hub->ready)
        return;
    zc_broker_tick(hub->broker, now);
    if (hub->stopping && hub->stop_at.ns <= now.mono.ns) {
        hub->stop_at = ZC_NEVER;
        zc_broker_cut(hub->broker);
    }
    if (hub->stopping && !hub->closing && hub->broker->sessions_count == 0) {
        hub->closing = true;
        if (hub->log == NULL)
            hub->stopped = true;
        else
            zc_log_close(hub->log, now);
        pump_log(hub, now);
    }
}

struct zc_mono zc_hub_deadline(struct zc_hub *hub)
{
    if (hub->stopped || hub->unusable)
        return ZC_NEVER;
    struct zc_mono d = zc_mono_min(zc_broker_deadline(hub->broker), hub->stop_at);
    if (hub->stopping && !hub->closing && hub->broker->sessions_count == 0)
        d = hub->broker->now.mono;
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
    pump_log(hub, now);
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
        .memory_bytes = b->hot_bytes + b->topics.bytes,
        .storage = ZC_LOG_CLOSED,
    };
    for (struct zc_list *l = b->sessions.next; l != &b->sessions; l = l->next) {
        const struct zc_session *s = ZC_CONTAINER(l, struct zc_session, link);
        st.memory_bytes += zc_session_out_bytes(s) + s->held_bytes + s->in.cap;
    }
    if (hub->log != NULL) {
        struct zc_log_status ls;
        zc_log_status(hub->log, &ls);
        st.storage = ls.state;
    }
    *ret_stats = st;
}
