/* Bodies of BIND, SEEN and STATE records, see stored.h. */
#include "zmqc/stored.h"

#include <string.h>

#include "base/check.h"
#include "base/le.h"

#define BIND_HEAD 4

struct zc_slice zc_stored_bind_encode(const struct zc_stored_bind *bind,
                                      uint8_t ret_body[ZC_STORED_BIND_MAX])
{
    size_t name = bind->name.len, topic = bind->topic.len;
    ZC_ASSERT(name > 0 && name <= ZC_MSG_STRING_MAX && topic <= ZC_MSG_STRING_MAX);
    zc_le_put(ret_body, name, 2);
    zc_le_put(ret_body + 2, topic, 2);
    memcpy(ret_body + BIND_HEAD, bind->name.data, name);
    if (topic > 0)
        memcpy(ret_body + BIND_HEAD + name, bind->topic.data, topic);
    return zc_slice(ret_body, BIND_HEAD + name + topic);
}

int zc_stored_bind_decode(struct zc_slice body, struct zc_stored_bind *ret_bind)
{
    if (body.len < BIND_HEAD)
        return ZC_EBADMSG;
    size_t name = zc_le_get(body.data, 2), topic = zc_le_get(body.data + 2, 2);
    if (name == 0 || name > ZC_MSG_STRING_MAX || topic > ZC_MSG_STRING_MAX ||
        BIND_HEAD + name + topic != body.len)
        return ZC_EBADMSG;
    ret_bind->name = zc_slice(body.data + BIND_HEAD, name);
    ret_bind->topic = zc_slice(body.data + BIND_HEAD + name, topic);
    return 0;
}

struct zc_slice zc_stored_seen_encode(const struct zc_stored_seen *seen,
                                      uint8_t ret_body[ZC_STORED_SEEN_LEN])
{
    zc_le_put(ret_body, seen->name, 8);
    zc_le_put(ret_body + 8, seen->id, 8);
    zc_le_put(ret_body + 16, (uint64_t)seen->until_ms, 8);
    return zc_slice(ret_body, ZC_STORED_SEEN_LEN);
}

int zc_stored_seen_decode(struct zc_slice body, struct zc_stored_seen *ret_seen)
{
    if (body.len != ZC_STORED_SEEN_LEN)
        return ZC_EBADMSG;
    *ret_seen = (struct zc_stored_seen){.name = zc_le_get(body.data, 8),
                                        .id = zc_le_get(body.data + 8, 8),
                                        .until_ms = (int64_t)zc_le_get(body.data + 16, 8)};
    return 0;
}

struct zc_slice zc_stored_state_encode(const struct zc_stored_state *state,
                                       uint8_t ret_body[ZC_STORED_STATE_LEN])
{
    zc_le_put(ret_body, state->attempt, 4);
    zc_le_put(ret_body + 4, (uint64_t)state->due_ms, 8);
    return zc_slice(ret_body, ZC_STORED_STATE_LEN);
}

int zc_stored_state_decode(struct zc_slice body, struct zc_stored_state *ret_state)
{
    if (body.len != ZC_STORED_STATE_LEN)
        return ZC_EBADMSG;
    ret_state->attempt = (uint32_t)zc_le_get(body.data, 4);
    ret_state->due_ms = (int64_t)zc_le_get(body.data + 4, 8);
    return 0;
}
