/*
 * Requests that wait for their reply: who asked, and which session may answer. Keyed by the message
 * id that the worker sees. An entry lives until its reply, its requester's end, or ten minutes.
 */
#ifndef ZC_ZMQC_REQUEST_H
#define ZC_ZMQC_REQUEST_H

#include <stdint.h>

#include "base/buf.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"

#define ZC_REQUEST_MS INT64_C(600000)

struct zc_session;

struct zc_request {
    struct zc_map_node node;
    struct zc_list in_session;
    struct zc_timer timer;
    struct zc_session *requester;
    uint64_t worker;    /* owner of the session that was given it last, 0: nobody yet */
    uint64_t name_hash; /* mailbox */
    uint16_t scope_len; /* bytes of message_id before the client's own id */
    uint16_t len;
    uint8_t message_id[];
};

struct zc_requests {
    uint8_t key[16];
    struct zc_map by_id;
};

/* The entry of this message id in the mailbox with that name hash (0: in any), or NULL. */
struct zc_request *zc_request_find(const struct zc_requests *r, struct zc_slice message_id,
                                   uint64_t name_hash);
/* New entry; message_id is scope_len bytes of scope and then the client's id. NULL: no memory. */
struct zc_request *zc_request_new(struct zc_requests *r, struct zc_session *requester,
                                  struct zc_slice message_id, size_t scope_len, uint64_t name_hash);
/* Another session waits for the reply. */
void zc_request_adopt(struct zc_request *q, struct zc_session *requester);
void zc_request_free(struct zc_requests *r, struct zc_heap *timers, struct zc_request *q);

#endif
