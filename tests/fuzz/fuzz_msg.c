/*
 * Any bytes as a message: decoded, and when it is sound, encoded and decoded again, with the same
 * result. One more round must give the same bytes. With white space between its members it must be
 * the same message, or refused as well.
 */
#include <stdlib.h>
#include <string.h>

#include "../unit/loosen.h"
#include "base/check.h"
#include "base/text.h"
#include "zmqc/msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct zc_msg first, second;

static bool same_strings(const struct zc_slice *a, const struct zc_slice *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (!zc_slice_eq(a[i], b[i]))
            return false;
    }
    return true;
}

static void check_strings(const struct zc_msg *a, const struct zc_msg *b)
{
    ZC_ASSERT(zc_slice_eq(a->op, b->op) && zc_slice_eq(a->id, b->id));
    ZC_ASSERT(zc_slice_eq(a->name, b->name) && zc_slice_eq(a->from, b->from));
    ZC_ASSERT(zc_slice_eq(a->text, b->text) && zc_slice_eq(a->body, b->body));
    ZC_ASSERT(zc_slice_eq(a->error, b->error) && zc_slice_eq(a->delivery, b->delivery));
    ZC_ASSERT(zc_slice_eq(a->by, b->by) && zc_slice_eq(a->epoch, b->epoch));
    ZC_ASSERT(zc_slice_eq(a->code, b->code) && zc_slice_eq(a->result, b->result));
    ZC_ASSERT(zc_slice_eq(a->topic, b->topic) && zc_slice_eq(a->to, b->to));
    ZC_ASSERT(zc_slice_eq(a->scope, b->scope) && zc_slice_eq(a->condition, b->condition));
    ZC_ASSERT(zc_slice_eq(a->after, b->after));
}

static void check_same(const struct zc_msg *a, const struct zc_msg *b)
{
    /* Nought and nothing are the same for these two. */
    uint32_t loose = ZC_MSG_HAS_LEASE | ZC_MSG_HAS_DELIVERIES;
    ZC_ASSERT((a->has | loose) == (b->has | loose));
    check_strings(a, b);
    ZC_ASSERT(a->lease == b->lease && a->attempt == b->attempt && a->at == b->at);
    ZC_ASSERT(a->end == b->end && a->peek == b->peek && a->on == b->on);
    ZC_ASSERT(a->subs == b->subs && a->count == b->count && a->expires == b->expires);
    ZC_ASSERT(a->delay_ms == b->delay_ms && a->ttl_ms == b->ttl_ms && a->wait_ms == b->wait_ms);
    ZC_ASSERT(a->max == b->max && a->headers_bytes == b->headers_bytes);
    ZC_ASSERT(a->headers_count == b->headers_count);
    for (uint32_t i = 0; i < a->headers_count; i++)
        ZC_ASSERT(zc_slice_eq(a->headers[i].key, b->headers[i].key) &&
                  zc_slice_eq(a->headers[i].value, b->headers[i].value));
    ZC_ASSERT(a->failed_count == b->failed_count &&
              same_strings(a->failed, b->failed, a->failed_count));
    ZC_ASSERT(a->deliveries_count == b->deliveries_count &&
              same_strings(a->deliveries, b->deliveries, a->deliveries_count));
}

static uint8_t *copy_of(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size > 0 ? size : 1); /* exact, for AddressSanitizer */
    ZC_ASSERT(copy != NULL);
    if (size > 0)
        memcpy(copy, data, size);
    return copy;
}

static void check_valid(const struct zc_msg *m)
{
    ZC_ASSERT(zc_text_utf8_valid(m->op) && zc_text_utf8_valid(m->id) &&
              zc_text_utf8_valid(m->name) && zc_text_utf8_valid(m->text));
    ZC_ASSERT(m->op.len <= ZC_MSG_OP_MAX && m->id.len <= ZC_MSG_STRING_MAX &&
              m->name.len <= ZC_MSG_STRING_MAX);
    ZC_ASSERT(m->headers_count <= ZC_MSG_HEADERS_CAP && m->failed_count <= ZC_MSG_DELIVERIES_MAX &&
              m->deliveries_count <= ZC_MSG_DELIVERIES_MAX);
}

static void round_trip(void)
{
    int err = 0;
    const char *reason = NULL;
    struct zc_block *a = zc_msg_encode(&first, &err);
    if (a == NULL) { /* escapes may make it longer than what came in */
        ZC_ASSERT(err == ZC_ELIMIT);
        return;
    }
    uint8_t *json = copy_of(a->data + ZC_FRAME_HEADER, a->len - ZC_FRAME_HEADER);
    ZC_ASSERT(zc_msg_decode(&second, json, a->len - ZC_FRAME_HEADER, &reason) == 0);
    ZC_ASSERT(second.invalid == NULL && !second.id_bad);
    check_same(&first, &second);
    struct zc_block *b = zc_msg_encode(&second, &err);
    ZC_ASSERT(b != NULL && zc_slice_eq(zc_block_slice(a), zc_block_slice(b)));
    free(json);
    zc_block_unref(a);
    zc_block_unref(b);
}

/* `first` is what the bytes give as they are. */
static void other_form(const uint8_t *data, size_t size, bool sound)
{
    const char *reason = NULL;
    uint8_t *loose = malloc(2 * size + 1);
    ZC_ASSERT(loose != NULL);
    size_t len = loosen((const char *)data, size, (char *)loose);
    ZC_ASSERT((zc_msg_decode(&second, loose, len, &reason) == 0) == sound);
    if (sound) {
        ZC_ASSERT(first.invalid == second.invalid && first.id_bad == second.id_bad);
        check_same(&first, &second);
    }
    free(loose);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *reason = NULL;
    uint8_t *json = copy_of(data, size);
    memset(&first, 0xa5, sizeof(first));
    if (zc_msg_decode(&first, json, size, &reason) == 0) {
        ZC_ASSERT(reason == NULL);
        check_valid(&first);
        other_form(data, size, true);
        if (first.invalid == NULL)
            round_trip();
    } else {
        ZC_ASSERT(reason != NULL && *reason != '\0');
        other_form(data, size, false);
    }
    free(json);
    return 0;
}
