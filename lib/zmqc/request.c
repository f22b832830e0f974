/* Requests that wait for their reply, see request.h. */
#include "zmqc/request.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "zmqc/session.h"

struct zc_request *zc_request_find(const struct zc_requests *r, struct zc_slice message_id,
                                   uint64_t name_hash)
{
    struct zc_map_node *n = zc_map_first(&r->by_id, zc_map_hash(r->key, message_id));
    for (; n != NULL; n = zc_map_next(n)) {
        struct zc_request *q = ZC_CONTAINER(n, struct zc_request, node);
        if (zc_slice_eq(message_id, zc_slice(q->message_id, q->len)) &&
            (name_hash == 0 || name_hash == q->name_hash))
            return q;
    }
    return NULL;
}

struct zc_request *zc_request_new(struct zc_requests *r, struct zc_session *requester,
                                  struct zc_slice message_id, size_t scope_len, uint64_t name_hash)
{
    struct zc_request *q = zc_alloc_zeroed(sizeof(*q) + message_id.len);
    if (q == NULL)
        return NULL;
    q->requester = requester;
    q->name_hash = name_hash;
    q->scope_len = (uint16_t)scope_len;
    q->len = (uint16_t)message_id.len;
    memcpy(q->message_id, message_id.data, message_id.len);
    if (zc_map_insert(&r->by_id, &q->node, zc_map_hash(r->key, message_id)) != 0) {
        free(q);
        return NULL;
    }
    zc_list_push(&requester->requests, &q->in_session);
    requester->requests_count++;
    return q;
}

void zc_request_adopt(struct zc_request *q, struct zc_session *requester)
{
    zc_list_remove(&q->in_session);
    q->requester->requests_count--;
    q->requester = requester;
    zc_list_push(&requester->requests, &q->in_session);
    requester->requests_count++;
}

void zc_request_free(struct zc_requests *r, struct zc_heap *timers, struct zc_request *q)
{
    zc_heap_remove(timers, &q->timer);
    zc_map_remove(&r->by_id, &q->node);
    zc_list_remove(&q->in_session);
    q->requester->requests_count--;
    free(q);
}
