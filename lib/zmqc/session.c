/* Output chunks and buffers of a session, see session.h. */
#include "zmqc/session.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static char *copy_text(const char *s)
{
    size_t len = strlen(s) + 1;
    char *copy = malloc(len);
    if (copy != NULL)
        memcpy(copy, s, len);
    return copy;
}

struct zc_session *zc_session_new(const char *identity, const char *name)
{
    struct zc_session *s = calloc(1, sizeof(*s));
    if (s == NULL)
        return NULL;
    struct zc_list *lists[] = {&s->link,   &s->dirty,    &s->stalled, &s->yielded, &s->out,
                               &s->unsent, &s->replies,  &s->gifts,   &s->waiters, &s->deliveries,
                               &s->subs,   &s->requests, &s->jobs};
    for (size_t i = 0; i < ZC_ARRAY_LEN(lists); i++)
        zc_list_init(lists[i]);
    s->identity = copy_text(identity);
    s->default_name = copy_text(name);
    if (s->identity == NULL || s->default_name == NULL) {
        zc_session_free(s);
        return NULL;
    }
    return s;
}

void zc_session_free(struct zc_session *s)
{
    if (s == NULL)
        return;
    zc_list_remove(&s->link);
    zc_list_remove(&s->dirty);
    zc_list_remove(&s->stalled);
    zc_list_remove(&s->yielded);
    zc_session_drop_output(s);
    zc_buf_done(&s->in);
    zc_buf_done(&s->name);
    free(s->marks.ends);
    free(s->identity);
    free(s->default_name);
    free(s);
}

struct zc_slice zc_session_id_head(struct zc_session *s)
{
    if (s->id_head_len == 0) {
        size_t len = 1 + zc_text_uint(s->id_head + 1, s->owner);
        s->id_head[0] = 's';
        s->id_head[len++] = ':';
        s->id_head_len = (uint8_t)len;
    }
    return zc_slice(s->id_head, s->id_head_len);
}

void zc_session_charge_bytes(struct zc_session *s, uint64_t n)
{
    if (s->account != NULL)
        *s->account += n;
}

void zc_session_discharge_bytes(struct zc_session *s, uint64_t n)
{
    if (s->account == NULL)
        return;
    ZC_ASSERT(*s->account >= n);
    *s->account -= n;
}

void zc_session_charge(struct zc_session *s, struct zc_block *frame)
{
    if (frame->outs++ == 0)
        zc_session_charge_bytes(s, frame->len);
}

void zc_session_discharge(struct zc_session *s, struct zc_block *frame)
{
    ZC_ASSERT(frame->outs > 0);
    if (--frame->outs == 0)
        zc_session_discharge_bytes(s, frame->len);
}

static struct zc_chunk *chunk_new(struct zc_session *s, size_t room)
{
    struct zc_chunk *c = malloc(sizeof(*c) + room);
    if (c == NULL)
        return NULL;
    c->block = NULL;
    c->start = c->end = 0;
    c->cap = (uint32_t)room;
    zc_list_push(&s->out, &c->link);
    zc_session_charge_bytes(s, sizeof(*c) + room);
    return c;
}

static void chunk_free(struct zc_session *s, struct zc_chunk *c)
{
    zc_list_remove(&c->link);
    zc_session_discharge_bytes(s, sizeof(*c) + c->cap);
    if (c->block != NULL)
        zc_session_discharge(s, c->block);
    zc_block_unref(c->block);
    free(c);
}

static struct zc_chunk *last_chunk(const struct zc_session *s)
{
    return zc_list_empty(&s->out) ? NULL : ZC_CONTAINER(s->out.prev, struct zc_chunk, link);
}

int zc_session_copy(struct zc_session *s, struct zc_slice frame)
{
    struct zc_chunk *c = last_chunk(s);
    ZC_ASSERT(frame.len <= ZC_SESSION_CHUNK);
    if (c == NULL || c->block != NULL || c->cap - c->end < frame.len) {
        /* Mostly one small frame goes out alone; malloc is fast below 1 KiB. */
        bool alone = c == NULL && frame.len <= ZC_SESSION_CHUNK_FIRST;
        c = chunk_new(s, alone ? ZC_SESSION_CHUNK_FIRST : ZC_SESSION_CHUNK);
        if (c == NULL)
            return ZC_ENOMEM;
    }
    memcpy(c->data + c->end, frame.data, frame.len);
    c->end += (uint32_t)frame.len;
    s->out_total += frame.len;
    return 0;
}

int zc_session_refer(struct zc_session *s, struct zc_block *block, uint32_t start, uint32_t len)
{
    struct zc_chunk *c = last_chunk(s);
    if (c == NULL || c->block != block || c->end != start) {
        if ((c = chunk_new(s, 0)) == NULL)
            return ZC_ENOMEM;
        c->block = zc_block_ref(block);
        zc_session_charge(s, block);
        c->start = c->end = start;
    }
    c->end += len;
    s->out_total += len;
    return 0;
}

int zc_session_write(struct zc_session *s, struct zc_block *frame)
{
    return frame->len <= ZC_SESSION_COPY_MAX ? zc_session_copy(s, zc_block_slice(frame))
                                             : zc_session_refer(s, frame, 0, frame->len);
}

size_t zc_session_slices(const struct zc_session *s, struct zc_slice *ret_slices, size_t cap)
{
    size_t n = 0;
    for (struct zc_list *l = s->out.next; l != &s->out && n < cap; l = l->next) {
        struct zc_chunk *c = ZC_CONTAINER(l, struct zc_chunk, link);
        const uint8_t *data = c->block != NULL ? c->block->data : c->data;
        ret_slices[n++] = zc_slice(data + c->start, c->end - c->start);
    }
    return n;
}

void zc_session_sent(struct zc_session *s, size_t n)
{
    s->sent_total += n;
    while (n > 0) {
        ZC_ASSERT(!zc_list_empty(&s->out));
        struct zc_chunk *c = ZC_CONTAINER(s->out.next, struct zc_chunk, link);
        size_t part = c->end - c->start;
        if (part > n) {
            c->start += (uint32_t)n;
            break;
        }
        n -= part;
        chunk_free(s, c);
    }
    struct zc_marks *m = &s->marks;
    while (m->len > 0 && m->ends[m->first % m->cap] <= s->sent_total) {
        m->first = (m->first + 1) % m->cap;
        m->len--;
    }
    if (m->len == 0 && m->cap > 0) {
        free(m->ends);
        *m = (struct zc_marks){0};
    }
}

void zc_session_drop_output(struct zc_session *s)
{
    while (!zc_list_empty(&s->out))
        chunk_free(s, ZC_CONTAINER(s->out.next, struct zc_chunk, link));
    s->sent_total = s->out_total;
    s->marks.len = 0;
}

int zc_session_mark(struct zc_session *s)
{
    struct zc_marks *m = &s->marks;
    if (m->len == m->cap) {
        uint32_t cap = m->cap == 0 ? 16 : m->cap * 2;
        uint64_t *ends = malloc(cap * sizeof(*ends));
        if (ends == NULL)
            return ZC_ENOMEM;
        for (uint32_t i = 0; i < m->len; i++)
            ends[i] = m->ends[(m->first + i) % m->cap];
        free(m->ends);
        *m = (struct zc_marks){ends, 0, m->len, cap};
    }
    m->ends[(m->first + m->len++) % m->cap] = s->out_total;
    return 0;
}
