/* The log under the broker: appends and reads go down, progress and restored records come up. */
#include <stdlib.h>

#include "base/json.h"
#include "base/le.h"
#include "node/hub_priv.h"
#include "zmqc/stored.h"

/* By enum zc_journal_kind. */
static const enum zc_record_type record_types[] = {ZC_RECORD_PUT,    ZC_RECORD_PUT,
                                                   ZC_RECORD_REMOVE, ZC_RECORD_STATE,
                                                   ZC_RECORD_BIND,   ZC_RECORD_SEEN};

static int64_t journal_append(void *arg, enum zc_journal_kind kind, uint64_t seq,
                              struct zc_slice body, bool sync_wanted, uint64_t *place)
{
    struct zc_hub *hub = arg;
    if (kind == ZC_JOURNAL_RETURN)
        return zc_log_append_again(hub->log, seq, body, place);
    return zc_log_append(hub->log, record_types[kind], seq, body, sync_wanted, place);
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

static void journal_own(void *arg, uint64_t place, uint64_t *owner)
{
    struct zc_hub *hub = arg;
    zc_log_own(hub->log, place, owner);
}

static int64_t journal_move(void *arg, enum zc_journal_kind kind, uint64_t seq,
                            struct zc_slice body)
{
    struct zc_hub *hub = arg;
    return zc_log_move(hub->log, record_types[kind], seq, body);
}

static const char *state_text(enum zc_log_state state)
{
    static const char *const texts[] = {"opening", "ok", "full", "error", "closed"};
    return texts[state];
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
        const char *key;
        uint64_t value;
    } rows[] = {{"bytes", st.bytes},           {"segments", st.segments},
                {"set_aside", st.damaged},     {"set_aside_bytes", st.damaged_bytes},
                {"torn_bytes", st.torn_bytes}, {"live_bytes", st.live_bytes},
                {"moved", st.moved},           {"moved_bytes", st.moved_bytes},
                {"indexed", st.indexed},       {"syncs", st.syncs}};
    for (size_t i = 0; err == 0 && i < ZC_ARRAY_LEN(rows); i++)
        err = zc_json_put_member(json, rows[i].key, (int64_t)rows[i].value);
    if (err == 0 && st.last_err != 0) {
        err = zc_json_put_raw(json, ",\"last_error\":");
        if (err == 0)
            err = zc_json_put_string(json, zc_slice_str(zc_err_text(st.last_err)));
        if (err == 0)
            err = zc_json_put_member(json, "last_error_segment", st.last_err_segment);
    }
    return err != 0 ? err : zc_json_put_raw(json, "}");
}

void zc_hub_store_init(struct zc_hub *hub)
{
    hub->journal = (struct zc_journal){hub,         journal_append, journal_read,  journal_forget,
                                       journal_own, journal_move,   journal_status};
    hub->broker->journal = &hub->journal;
}

/* A line for the log about a change of the storage's state. */
static void note_state(struct zc_hub *hub)
{
    struct zc_log_status st;
    zc_log_status(hub->log, &st);
    if (st.failures != hub->failures_told && st.state == ZC_LOG_OK && st.last_err != ZC_ENOSPC)
        zc_broker_log(
            hub->broker, ZC_HUB_ERR, NULL,
            "storage: a write or fsync failed (I/O error): what was not on disk goes to a "
            "fresh segment; check the disk");
    hub->failures_told = st.failures;
    if (st.state == hub->state_told)
        return;
    bool was_bad = hub->state_told == ZC_LOG_FULL || hub->state_told == ZC_LOG_ERROR;
    hub->state_told = st.state;
    hub->note_level = ZC_HUB_ERR;
    if (st.state == ZC_LOG_FULL) {
        hub->note =
            st.last_err == ZC_ENOSPC || st.last_err == 0
                ? "storage: the disk is full: puts are refused, takes go on; free some space"
                : "storage: no new segment can be made: puts are refused, takes go on; is the "
                  "mailbox directory still there, and writable?";
    } else if (st.state == ZC_LOG_ERROR) {
        hub->note = "storage: writing failed: puts, takes and acks are refused until it works; "
                    "check the disk";
    } else if (st.state == ZC_LOG_OK && was_bad) {
        hub->note_level = ZC_HUB_NOTICE;
        hub->note = "storage: works again";
    }
    if (st.state == ZC_LOG_OK)
        zc_broker_store_again(hub->broker);
    if (st.state == ZC_LOG_CLOSED && hub->closing)
        hub->stopped = true;
}

/* What opening found broken, said once. */
static void note_damage(struct zc_hub *hub)
{
    struct zc_log_status st;
    zc_log_status(hub->log, &st);
    if (st.damaged > 0)
        zc_broker_log(hub->broker, ZC_HUB_ERR, NULL,
                      "storage: some records were damaged or missing and are left out; zmqcat "
                      "status counts them as set_aside; check the disk");
}

/* One surviving record while the log opens. */
static void restore(struct zc_hub *hub, const struct zc_log_event *ev)
{
    struct zc_broker *b = hub->broker;
    struct zc_stored_state state;
    int err = 0;
    if (ev->type == ZC_RECORD_PUT) {
        err = zc_broker_restore_put(b, ev->seq, ev->body, ev->body_len, ev->place);
    } else if (ev->type == ZC_RECORD_BIND) {
        err = zc_broker_restore_bind(b, ev->seq, ev->body, ev->place);
    } else if (ev->type == ZC_RECORD_SEEN) {
        err = zc_broker_restore_seen(b, ev->seq, ev->body, ev->place);
    } else if (ev->type == ZC_RECORD_REMOVE) {
        for (size_t i = 0; i + 8 <= ev->body.len; i += 8)
            zc_broker_restore_remove(b, zc_le_get(ev->body.data + i, 8));
    } else if (ev->type == ZC_RECORD_STATE) {
        err = zc_stored_state_decode(ev->body, &state);
        if (err == 0)
            zc_broker_restore_state(b, ev->seq, state.attempt, state.due_ms);
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
        if (zc_broker_restored(b, now, zc_log_seq_max(hub->log)) != 0) {
            hub->unusable = true;
            hub->unusable_err = ZC_ENOMEM;
            hub->unusable_text = "not enough memory for the stored messages";
            break;
        }
        note_damage(hub);
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
    case ZC_LOG_MOVE:
        zc_broker_move(b, now, ev->body, ev->owner);
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
void zc_hub_store_pump(struct zc_hub *hub, struct zc_now now)
{
    struct zc_log_event ev;
    while (hub->log != NULL && !hub->unusable && zc_log_event(hub->log, &ev))
        log_event(hub, now, &ev);
    if (hub->log != NULL)
        zc_broker_block_input(hub->broker, now, zc_log_backlogged(hub->log));
}
