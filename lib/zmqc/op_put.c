/* put, req and rep, see op.h. */
#include <string.h>

#include "base/text.h"
#include "zmqc/gift.h"
#include "zmqc/group.h"
#include "zmqc/lease.h"
#include "zmqc/message.h"
#include "zmqc/op.h"
#include "zmqc/reply.h"
#include "zmqc/seen.h"
#include "zmqc/settle.h"

/* s<session or scope>:<id>, or 24 random hex digits without an id. Returns the length; *ret_scope
 * that of the part before the client's id. */
static size_t message_id(struct zc_broker *b, struct zc_session *s, struct zc_slice id,
                         uint8_t ret_id[ZC_MSG_MESSAGE_ID_MAX], size_t *ret_scope)
{
    *ret_scope = 0;
    if (id.len == 0) {
        zc_rng_hex(&b->rng, (char *)ret_id, 24);
        return 24;
    }
    struct zc_slice head = zc_session_id_head(s);
    memcpy(ret_id, head.data, head.len);
    memcpy(ret_id + head.len, id.data, id.len);
    *ret_scope = head.len;
    return head.len + id.len;
}

/* What a message comes from. */
enum origin { PUT, REQ };
/* What a put leads to. */
enum outcome { STORED, KNOWN, REFUSED };

/* Somebody waits for a message of that sender, or works on one of the mailbox. */
static bool has_consumer(const struct zc_mailbox *mb, uint64_t from)
{
    return mb->any > 0 || mb->leased > 0 || zc_group_wants(mb, from);
}

static bool over_on_arrival(const struct zc_broker *b, const struct zc_msg *m)
{
    struct zc_mono expires;
    int64_t expires_ms;
    return !zc_op_lifetime(b, m, &expires, &expires_ms);
}

/* PENDING message; NULL when memory is refused. */
static struct zc_message *of_item(struct zc_broker *b, struct zc_mailbox *mb,
                                  const struct zc_item *item, const struct zc_header *headers,
                                  uint32_t headers_count)
{
    struct zc_block *body = zc_item_encode(item, headers, headers_count);
    return body != NULL ? zc_message_new(b, mb, b->seq_next, body, item) : NULL;
}

/* PENDING message of m, with its times set. NULL when memory is refused. */
static struct zc_message *make_message(struct zc_broker *b, const struct zc_session *s,
                                       struct zc_mailbox *mb, const struct zc_msg *m,
                                       struct zc_slice id, enum origin origin)
{
    struct zc_item item = {.name = zc_mailbox_name(mb),
                           .id = id,
                           .from = zc_op_from(s, m),
                           .by = zc_slice_str(s->identity),
                           .payload = zc_msg_payload(m),
                           .request = origin == REQ,
                           .at_ms = b->now.wall.ms};
    struct zc_mono expires;
    zc_op_lifetime(b, m, &expires, &item.expires_ms);
    bool delayed = origin == PUT && (m->has & ZC_MSG_HAS_DELAY) != 0 && m->delay_ms > 0;
    if (delayed)
        item.due_ms = b->now.wall.ms + m->delay_ms;
    struct zc_message *msg = of_item(b, mb, &item, m->headers, m->headers_count);
    if (msg == NULL)
        return NULL;
    msg->expires = expires;
    if (delayed)
        msg->due = zc_mono_add_ms(b->now.mono, m->delay_ms);
    return msg;
}

static void unroutable(struct zc_broker *b, struct zc_session *s, const struct zc_msg *m)
{
    zc_reply_err(b, s, m->id, "unroutable", "nobody waits on or reads this mailbox");
}

static bool memory_full(const struct zc_broker *b, size_t payload)
{
    return b->journal == NULL && b->hot_bytes + payload > ZC_BROKER_MEMORY_MAX;
}

/* The id of this put is remembered for a while when the message is gone. */
static void note_scoped(const struct zc_broker *b, struct zc_message *msg, const uint64_t *key)
{
    int64_t run = zc_mono_diff_ms(b->started, b->now.mono);
    msg->scoped = true;
    msg->id_tag = key[1];
    msg->seen_s = (uint32_t)((run + ZC_SEEN_MS + 999) / 1000);
}

/* Journals a new message; key NULL: it is not looked for by its id. The ticket (0 without a
 * journal), or a negative zc_err, then it is freed. */
static int64_t enter(struct zc_broker *b, struct zc_message *msg, const uint64_t *key)
{
    int64_t ticket = key != NULL ? zc_message_remember(b, msg, key) : 0;
    if (ticket == 0)
        ticket = zc_message_store(b, msg, false);
    if (ticket < 0) {
        msg->place = 0;
        zc_message_free(b, msg);
        return ticket;
    }
    b->seq_next++;
    msg->mailbox->in++;
    b->count.puts++;
    if (b->journal == NULL)
        zc_message_show(b, msg);
    return ticket;
}

/* The message of m, made and journaled, likewise. */
static int64_t add(struct zc_broker *b, const struct zc_session *s, struct zc_mailbox *mb,
                   const struct zc_msg *m, struct zc_slice id, const uint64_t *key,
                   enum origin origin)
{
    struct zc_message *msg = make_message(b, s, mb, m, id, origin);
    if (msg == NULL)
        return ZC_ENOMEM;
    if (origin == PUT && s->scope != NULL && key != NULL)
        note_scoped(b, msg, key);
    return enter(b, msg, key);
}

/* The message of m, made and journaled. STORED: *ret_ticket must be synced before ok; KNOWN: an
 * equal id is there, its ticket likewise; REFUSED: an err was sent. */
static enum outcome store(struct zc_broker *b, struct zc_session *s, struct zc_mailbox *mb,
                          const struct zc_msg *m, struct zc_slice id, bool request,
                          uint64_t *ret_ticket)
{
    uint64_t key[2];
    zc_message_key(b, mb, id, key);
    struct zc_message *known = m->id.len > 0 ? zc_message_by_key(b, key) : NULL;
    *ret_ticket = 0;
    if (known != NULL) {
        /* Its put may still wait for the disk: then all tickets so far cover it. */
        if (known->state == ZC_MESSAGE_PENDING)
            *ret_ticket = zc_settle_last(b);
        return KNOWN;
    }
    if (m->id.len > 0 && zc_row_ids_find(&b->row_ids, key) != NULL)
        return KNOWN;
    if (s->scope != NULL && !request && m->id.len > 0 && zc_seen_has(b, key[1]))
        return KNOWN;
    if (!request && m->condition.len > 0 &&
        !has_consumer(mb, zc_filter_hash(b->key, zc_op_from(s, m)))) {
        unroutable(b, s, m);
        return REFUSED;
    }
    if (over_on_arrival(b, m)) {
        b->count.expired++;
        b->count.dropped++;
        mb->dropped++;
        return KNOWN;
    }
    if (memory_full(b, zc_msg_payload(m).len)) {
        zc_reply_err(b, s, m->id, "full", "all mailboxes together hold 1 GiB: take some first");
        return REFUSED;
    }
    if (zc_mailbox_full(mb, b->limits.mailbox_cap)) {
        zc_reply_err(b, s, m->id, "full", "mailbox: queue full");
        return REFUSED;
    }
    int64_t ticket = add(b, s, mb, m, id, m->id.len > 0 ? key : NULL, request ? REQ : PUT);
    if (ticket < 0) {
        zc_reply_storage(b, s, m->id, (int)ticket);
        return REFUSED;
    }
    *ret_ticket = (uint64_t)ticket;
    return STORED;
}

/* mb->waiting is raised while we work, so that the mailbox cannot vanish under us. */
static struct zc_mailbox *mailbox(struct zc_broker *b, struct zc_session *s, const struct zc_msg *m)
{
    const char *code = NULL, *text = NULL;
    struct zc_mailbox *mb = zc_broker_mailbox(b, m->name, true, &code, &text);
    if (mb == NULL)
        zc_reply_err(b, s, m->id, code, text);
    else
        mb->waiting++;
    return mb;
}

static void release(struct zc_broker *b, struct zc_mailbox *mb)
{
    mb->waiting--;
    zc_gift_dispatch(b, mb);
}

void zc_op_put(struct zc_broker *b, struct zc_session *s, struct zc_msg *m)
{
    if (!zc_op_check_message(b, s, m))
        return;
    if (m->condition.len > 0 && !zc_slice_is(m->condition, "consumer")) {
        zc_reply_err(b, s, m->id, "invalid", "if: the only condition is `consumer`");
        return;
    }
    s->has_put = true;
    uint8_t id[ZC_MSG_MESSAGE_ID_MAX];
    size_t scope, len = message_id(b, s, m->id, id, &scope);
    bool none = m->condition.len > 0 && zc_broker_mailbox(b, m->name, false, NULL, NULL) == NULL;
    if (none && !(s->scope != NULL && scope > 0 &&
                  zc_seen_has(b, zc_seen_hash(m->name, zc_slice(id, len))))) {
        unroutable(b, s, m);
        return;
    }
    struct zc_mailbox *mb = mailbox(b, s, m);
    if (mb == NULL)
        return;
    uint64_t ticket;
    if (store(b, s, mb, m, zc_slice(id, len), false, &ticket) != REFUSED)
        zc_reply_ok(b, s, m->id, m->name, ticket);
    release(b, mb);
}

static int64_t add_bound(struct zc_broker *b, struct zc_mailbox *mb, const struct zc_pub *pub,
                         size_t *ret_made)
{
    char id[24];
    struct zc_item item = pub->item;
    item.name = zc_mailbox_name(mb);
    item.id = zc_slice(id, sizeof(id));
    size_t strings = pub->headers_bytes + item.name.len + item.id.len + item.from.len + item.by.len;
    if (zc_mailbox_full(mb, b->limits.mailbox_cap) || memory_full(b, item.payload.len) ||
        !zc_op_fits(item.payload.len, strings, pub->headers_count)) {
        mb->dropped++;
        b->count.dropped++;
        return 0;
    }
    zc_rng_hex(&b->rng, id, sizeof(id));
    struct zc_message *msg = of_item(b, mb, &item, pub->headers, pub->headers_count);
    if (msg == NULL)
        return ZC_ENOMEM;
    msg->expires = pub->expires;
    *ret_made = msg->body_len;
    return enter(b, msg, NULL);
}

int64_t zc_op_put_bound(struct zc_broker *b, const struct zc_pub *pub, struct zc_slice name,
                        size_t *ret_made)
{
    const char *code = NULL, *text = NULL;
    struct zc_mailbox *mb = zc_broker_mailbox(b, name, true, &code, &text);
    *ret_made = 0;
    if (mb == NULL) {
        b->count.dropped++;
        return 0;
    }
    mb->waiting++;
    int64_t ticket = add_bound(b, mb, pub, ret_made);
    mb->waiting--; /* who waits is served when the publisher has its answer */
    zc_broker_reap(b, mb);
    return ticket;
}

void zc_op_req(struct zc_broker *b, struct zc_session *s, struct zc_msg *m)
{
    if (m->id.len == 0) {
        zc_reply_err(b, s, m->id, "no_id", "req: missing correlation id");
        return;
    }
    if (!zc_op_check_message(b, s, m))
        return;
    struct zc_mailbox *mb = mailbox(b, s, m);
    if (mb == NULL)
        return;
    uint8_t id[ZC_MSG_MESSAGE_ID_MAX];
    size_t scope, len = message_id(b, s, m->id, id, &scope);
    struct zc_slice mid = zc_slice(id, len);
    struct zc_request *q = zc_request_find(&b->requests, mid, mb->node.hash);
    bool known = q != NULL;
    if (known && q->requester != s)
        zc_request_adopt(q, s); /* of the same scope */
    s->has_put = true;
    if (!known && (s->requests_count >= ZC_BROKER_REQUESTS_MAX ||
                   b->requests.by_id.len >= ZC_BROKER_WAITING_MAX)) {
        zc_reply_err(b, s, m->id, "full", "too many requests wait for a reply");
        release(b, mb);
        return;
    }
    if (!known)
        q = zc_request_new(&b->requests, s, mid, scope, mb->node.hash);
    if (q == NULL) {
        zc_broker_kill(b, s, "out of memory: session ended");
        release(b, mb);
        return;
    }
    q->timer.kind = ZC_TIMER_REQUEST;
    uint64_t ticket;
    enum outcome what = REFUSED;
    if (zc_heap_set(&b->timers, &q->timer, zc_mono_add_ms(b->now.mono, ZC_REQUEST_MS)) == 0)
        what = store(b, s, mb, m, mid, true, &ticket);
    else
        zc_reply_err(b, s, m->id, "unavailable", ZC_OP_NO_MEMORY);
    if (what == KNOWN && !known) {
        /* An earlier session of the scope asked, and it was given out. */
        uint64_t key[2];
        zc_message_key(b, mb, mid, key);
        const struct zc_message *msg = zc_message_by_key(b, key);
        q->worker = msg != NULL && msg->delivery != NULL ? msg->delivery->owner : 0;
    }
    if (what == REFUSED && !known)
        zc_request_free(&b->requests, &b->timers, q);
    release(b, mb);
}

/* The frame for the requester, or NULL. What the worker said must not be too large for what we add:
 * its escapes made the text longer than it came, and the name of its session may have no room. */
static struct zc_block *reply_frame(struct zc_msg *out, const struct zc_session *s,
                                    const struct zc_msg *m)
{
    struct zc_slice from = zc_op_from(s, m), text = m->text, body = m->body;
    struct zc_block *frame = NULL;
    int err = ZC_ELIMIT;
    for (int i = 0; i < 4 && frame == NULL && err == ZC_ELIMIT; i++) {
        out->from = i % 2 == 0 ? from : m->from;
        out->text = i < 2 ? text : zc_slice(NULL, 0);
        out->body = i < 2 ? body : zc_msg_payload(m);
        frame = zc_msg_encode(out, &err);
    }
    return frame;
}

/* False: the frame for the requester does not fit an envelope even without text and added name. */
static bool send_reply(struct zc_broker *b, const struct zc_request *q, const struct zc_session *s,
                       const struct zc_msg *m)
{
    struct zc_msg *out = &b->out;
    zc_msg_clear(out);
    out->op = zc_slice_str("rep");
    out->id = zc_slice(q->message_id + q->scope_len, q->len - q->scope_len);
    out->name = m->name;
    out->headers_count = m->headers_count;
    out->headers_bytes = m->headers_bytes;
    memcpy(out->headers, m->headers, m->headers_count * sizeof(m->headers[0]));
    struct zc_block *frame = reply_frame(out, s, m);
    if (frame == NULL)
        return false;
    if (b->trace)
        zc_broker_trace(b, q->requester, true, out);
    zc_reply_write(b, q->requester, frame, false);
    zc_block_unref(frame);
    return true;
}

/* The request that a rep of this session answers, or NULL. */
static struct zc_request *answered(struct zc_broker *b, const struct zc_session *s,
                                   const struct zc_delivery *d, struct zc_slice id,
                                   struct zc_slice name)
{
    if (id.len == 0)
        return NULL;
    uint64_t hash = d != NULL ? d->message->mailbox->node.hash : zc_map_hash(b->key, name);
    struct zc_request *q = zc_request_find(&b->requests, id, hash);
    if (q == NULL && d == NULL) /* taken, and answered under another name or none */
        q = zc_request_find(&b->requests, id, 0);
    /* By its serial when it got the request before it had a scope. */
    return q != NULL && (q->worker == s->owner || q->worker == s->serial) ? q : NULL;
}

void zc_op_rep(struct zc_broker *b, struct zc_session *s, struct zc_msg *m)
{
    if (!zc_op_check_headers(b, s, m))
        return;
    struct zc_delivery *d = NULL;
    struct zc_slice id = m->id;
    if (id.len > 0) {
        d = zc_lease_by_message(b, s, id, m->name);
    } else if (m->delivery.len > 0) {
        d = zc_lease_find(b, s, m->delivery);
        if (d != NULL)
            id = zc_slice(d->request_id, d->request_id_len);
    }
    struct zc_request *q = answered(b, s, d, id, m->name);
    if (q != NULL && !send_reply(b, q, s, m)) {
        zc_reply_err(b, s, m->id, "too_large", "mailbox: payload too large");
        return;
    }
    if (q != NULL)
        zc_request_free(&b->requests, &b->timers, q);
    int64_t ticket = d != NULL ? zc_lease_ack(b, &d, 1) : 0;
    if (ticket < 0)
        zc_reply_storage(b, s, m->id, (int)ticket);
    else
        zc_reply_ok(b, s, m->id, zc_slice(NULL, 0), (uint64_t)ticket);
}
