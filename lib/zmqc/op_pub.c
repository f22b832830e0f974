/* pub, sub and unsub, see op.h. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "zmqc/binding.h"
#include "zmqc/job.h"
#include "zmqc/op.h"
#include "zmqc/reply.h"

/* The frame that all subscribers get. */
static struct zc_block *encode(struct zc_broker *b, const struct zc_pub *pub)
{
    struct zc_msg *out = &b->out;
    zc_msg_clear(out);
    out->op = zc_slice_str("msg");
    out->id = pub->item.id;
    out->name = pub->item.name;
    out->from = pub->item.from;
    out->by = pub->item.by;
    out->at = pub->item.at_ms;
    out->has = ZC_MSG_HAS_AT;
    out->headers_count = pub->headers_count;
    out->headers_bytes = pub->headers_bytes;
    if (pub->headers != out->headers)
        memcpy(out->headers, pub->headers, pub->headers_count * sizeof(out->headers[0]));
    if (pub->text)
        zc_msg_set_text(out, pub->item.payload);
    else
        zc_msg_set_payload(out, pub->item.payload);
    int err = 0;
    return zc_msg_encode(out, &err);
}

static bool add_match(struct zc_broker *b, struct zc_session *s)
{
    if (b->matches_len == b->matches_cap) {
        uint32_t cap = b->matches_cap == 0 ? 64 : b->matches_cap * 2;
        struct zc_match *grown = realloc(b->matches, cap * sizeof(*grown));
        if (grown == NULL)
            return false;
        b->matches = grown;
        b->matches_cap = cap;
    }
    s->pub_mark = b->pub_mark;
    s->match_slot = b->matches_len;
    b->matches[b->matches_len++] = (struct zc_match){s, NULL};
    return true;
}

/* Sessions with a matching subscription, each once, into b->matches. */
static bool find_matches(struct zc_broker *b, struct zc_slice name, uint64_t from)
{
    b->matches_len = 0;
    size_t len = 0;
    struct zc_prefix *p;
    while ((p = zc_topics_match(&b->topics, name, &len)) != NULL) {
        for (struct zc_list *l = p->subs.next; l != &p->subs; l = l->next) {
            struct zc_sub *sub = ZC_CONTAINER(l, struct zc_sub, in_prefix);
            struct zc_session *s = sub->session;
            if (!zc_filter_allows(sub->filter, from))
                continue;
            if (s->pub_mark != b->pub_mark && !add_match(b, s))
                return false;
            struct zc_match *match = &b->matches[s->match_slot];
            /* One that is behind brings the value in any case. */
            if (zc_topics_replaying(sub) && (match->replaying == NULL || sub->behind))
                match->replaying = sub;
        }
    }
    return true;
}

static void drop_value(struct zc_broker *b, struct zc_slice name)
{
    struct zc_topic *topic = zc_topics_find(&b->topics, name);
    if (topic != NULL)
        zc_topics_remove(&b->topics, &b->timers, topic);
}

/* False: no memory. */
static bool keep_value(struct zc_broker *b, const struct zc_pub *pub, struct zc_block *frame,
                       uint64_t from)
{
    struct zc_topic *topic;
    if (b->limits.topics_max == 0)
        return true;
    if (zc_topics_set(&b->topics, pub->item.name, frame, b->limits.topics_max, &b->timers,
                      &topic) != 0)
        return false;
    topic->timer.kind = ZC_TIMER_TOPIC;
    topic->from = from;
    return pub->expires.ns == ZC_NEVER.ns ||
           zc_heap_set(&b->timers, &topic->timer, pub->expires) == 0;
}

static void answer(struct zc_broker *b, struct zc_session *s, const struct zc_pub *pub,
                   uint64_t ticket, int err)
{
    if (s == NULL)
        return;
    s->cost += b->matches_len / 16; /* others have their turn before a long fan-out is repeated */
    if (err == 0)
        zc_reply_ok_pub(b, s, pub->item.id, pub->item.name, b->matches_len, ticket);
    else if (err == ZC_ENOMEM)
        zc_reply_err(b, s, pub->item.id, "unavailable", ZC_OP_NO_MEMORY);
    else
        zc_reply_err(b, s, pub->item.id, "storage", ZC_REPLY_PUB_FAILED);
}

void zc_op_published(struct zc_broker *b, struct zc_session *s, const struct zc_pub *pub,
                     uint64_t ticket, int err)
{
    uint64_t from = zc_filter_hash(b->key, pub->item.from);
    struct zc_block *frame = encode(b, pub);
    b->pub_mark++;
    b->matches_len = 0;
    if (frame == NULL || !find_matches(b, pub->item.name, from) ||
        !keep_value(b, pub, frame, from)) {
        b->matches_len = 0;
        err = ZC_ENOMEM;
    }
    answer(b, s, pub, ticket, err);
    struct zc_fan_part part = {NULL, 0, 0};
    if (b->matches_len > 1)
        part = zc_fan_add(&b->fan, frame);
    for (uint32_t i = 0; i < b->matches_len; i++)
        zc_reply_publish(b, &b->matches[i], frame, &part);
    zc_block_unref(frame);
}

void zc_op_pub(struct zc_broker *b, struct zc_session *s, struct zc_msg *m)
{
    if (!zc_op_check_message(b, s, m))
        return;
    struct zc_pub pub = {.item = {.name = m->name,
                                  .id = m->id,
                                  .from = zc_op_from(s, m),
                                  .by = zc_slice_str(s->identity),
                                  .payload = zc_msg_payload(m),
                                  .at_ms = b->now.wall.ms},
                         .headers = m->headers,
                         .headers_count = m->headers_count,
                         .headers_bytes = m->headers_bytes,
                         .text = m->body.len == 0};
    if (!zc_op_lifetime(b, m, &pub.expires, &pub.item.expires_ms)) {
        b->count.expired++;
        b->count.dropped++;
        drop_value(b, m->name);
        zc_reply_ok_pub(b, s, m->id, m->name, 0, 0);
        return;
    }
    if (b->bindings_count > 0)
        zc_job_pub_start(b, s, &pub);
    else
        zc_op_published(b, s, &pub, 0, 0);
}

void zc_op_sub(struct zc_broker *b, struct zc_session *s, struct zc_msg *m)
{
    if (s->subs_count >= ZC_BROKER_SUBS_MAX) {
        zc_reply_err(b, s, m->id, "full", "too many subscriptions in this session");
        return;
    }
    struct zc_filter *filter = NULL;
    if (!zc_op_filter(b, s, m, &filter))
        return;
    struct zc_sub *sub = zc_topics_sub(&b->topics, s, m->name, filter);
    if (sub == NULL) {
        zc_reply_err(b, s, m->id, "unavailable", ZC_OP_NO_MEMORY);
        return;
    }
    if (zc_slice_is(m->after, "now"))
        sub->replayed = sub->replay_to;
    zc_reply_ok(b, s, m->id, m->name, 0);
    zc_reply_replay(b, s);
}

/* What bind and unbind share. */
static void binding(struct zc_broker *b, struct zc_session *s, const struct zc_msg *m, bool add)
{
    int64_t ticket = 0;
    if (m->name.len == 0) {
        zc_reply_err(b, s, m->id, "empty_name", "mailbox: empty name");
    } else if (m->name.data[0] == '$' || (m->topic.len > 0 && m->topic.data[0] == '$')) {
        zc_reply_err(b, s, m->id, "denied", "name is reserved");
    } else if ((ticket = add ? zc_binding_add(b, m->name, m->topic)
                             : zc_binding_remove(b, m->name, m->topic)) >= 0) {
        zc_reply_ok(b, s, m->id, m->name, (uint64_t)ticket);
    } else if (ticket == ZC_ELIMIT) {
        zc_reply_err(b, s, m->id, "full", "too many bindings: 65,536 are there");
    } else {
        zc_reply_storage(b, s, m->id, (int)ticket);
    }
}

void zc_op_bind(struct zc_broker *b, struct zc_session *s, struct zc_msg *m)
{
    binding(b, s, m, true);
}

void zc_op_unbind(struct zc_broker *b, struct zc_session *s, struct zc_msg *m)
{
    binding(b, s, m, false);
}

void zc_op_unsub(struct zc_broker *b, struct zc_session *s, struct zc_msg *m)
{
    while (!zc_list_empty(&s->subs))
        zc_topics_unsub(&b->topics, ZC_CONTAINER(s->subs.next, struct zc_sub, in_session));
    zc_reply_ok(b, s, m->id, zc_slice(NULL, 0), 0);
}
