/*
 * Table of the fields of a message. A name is found by its length and first letter, so that no key
 * costs more than two comparisons.
 */
#include <string.h>

#include "zmqc/msg_field.h"

/* Names of the same length and first letter stand next to each other. */
enum field_index {
    FIELD_NONE,
    FIELD_V,
    FIELD_OP,
    FIELD_ON,
    FIELD_ID,
    FIELD_IF,
    FIELD_AT,
    FIELD_BY,
    FIELD_TO,
    FIELD_END,
    FIELD_MAX,
    FIELD_TTL,
    FIELD_NAME,
    FIELD_FROM,
    FIELD_TEXT,
    FIELD_BODY,
    FIELD_PEEK,
    FIELD_SUBS,
    FIELD_CODE,
    FIELD_WAIT,
    FIELD_ERROR,
    FIELD_EPOCH,
    FIELD_LEASE,
    FIELD_COUNT,
    FIELD_DELAY,
    FIELD_TOPIC,
    FIELD_SCOPE,
    FIELD_AFTER,
    FIELD_FAILED,
    FIELD_FILTER,
    FIELD_RESULT,
    FIELD_HEADERS,
    FIELD_ATTEMPT,
    FIELD_EXPIRES,
    FIELD_DELIVERY,
    FIELD_DELIVERIES,
    FIELD_COUNT_OF, /* one spare name follows the last, so that a pair may always be looked at */
};

_Static_assert(FIELD_V == ZC_MSG_FIELD_V, "what msg_decode.c looks for first");
_Static_assert(FIELD_COUNT_OF <= 64, "one bit of a word for each field");

#define FIELD(name, kind, member, has, most, bad, utf8, range)                                     \
    {                                                                                              \
        name, sizeof(name) - 1, kind, offsetof(struct zc_msg, member), has, most, bad, utf8, range \
    }
#define STRING(name, member, most, range)                                                          \
    FIELD(name, ZC_MSG_KIND_STRING, member, 0, most, name " is not a string",                      \
          name " is not valid UTF-8", range)
#define SHORT(name, member)                                                                        \
    STRING(name, member, ZC_MSG_STRING_MAX, name " is longer than 1,024 bytes")
#define INT(name, member, has)                                                                     \
    FIELD(name, ZC_MSG_KIND_INT, member, has, 0, name " is not an integer", NULL, NULL)
#define SECONDS(name, member, has)                                                                 \
    FIELD(name, ZC_MSG_KIND_SECONDS, member, has, 0, name " is not a number", NULL,                \
          name " is not between 0 and ten years")
#define BOOL(name, member, has)                                                                    \
    FIELD(name, ZC_MSG_KIND_BOOL, member, has, 0, name " is not true or false", NULL, NULL)
#define STRINGS(name, member, has)                                                                 \
    FIELD(name, ZC_MSG_KIND_STRINGS, member, has, 0, name " is not an array of strings",           \
          name " is not valid UTF-8", name " has more than 1,024 entries")

const struct zc_msg_field zc_msg_field_table[FIELD_COUNT_OF + 1] = {
    [FIELD_V] = FIELD("v", ZC_MSG_KIND_VERSION, has, 0, 0, "v is not 0 or 1", NULL, NULL),
    [FIELD_OP] = STRING("op", op, ZC_MSG_OP_MAX, "op is longer than 64 bytes"),
    [FIELD_ON] = BOOL("on", on, ZC_MSG_HAS_ON),
    [FIELD_ID] = STRING("id", id, ZC_MSG_MESSAGE_ID_MAX, ZC_MSG_ID_LONG),
    [FIELD_IF] = STRING("if", condition, 0, NULL),
    [FIELD_AT] = INT("at", at, ZC_MSG_HAS_AT),
    [FIELD_BY] = STRING("by", by, 0, NULL),
    [FIELD_TO] = SHORT("to", to),
    [FIELD_END] = BOOL("end", end, 0),
    [FIELD_MAX] = FIELD("max", ZC_MSG_KIND_MAX, max, ZC_MSG_HAS_MAX, 0, "max is not an integer",
                        NULL, "max is not between 1 and 1,024"),
    [FIELD_TTL] = SECONDS("ttl", ttl_ms, ZC_MSG_HAS_TTL),
    [FIELD_NAME] = SHORT("name", name),
    [FIELD_FROM] = SHORT("from", from),
    [FIELD_TEXT] = FIELD("text", ZC_MSG_KIND_STRING, text, 0, 0, "text is not a string",
                         "text is not valid UTF-8: send it as body", NULL),
    [FIELD_BODY] = FIELD("body", ZC_MSG_KIND_BODY, body, 0, 0,
                         "body is not a string of padded base64", NULL, NULL),
    [FIELD_PEEK] = BOOL("peek", peek, 0),
    [FIELD_SUBS] = INT("subs", subs, ZC_MSG_HAS_SUBS),
    [FIELD_CODE] = STRING("code", code, 0, NULL),
    [FIELD_WAIT] = SECONDS("wait", wait_ms, ZC_MSG_HAS_WAIT),
    [FIELD_ERROR] = STRING("error", error, 0, NULL),
    [FIELD_EPOCH] = STRING("epoch", epoch, 0, NULL),
    [FIELD_LEASE] = INT("lease", lease, ZC_MSG_HAS_LEASE),
    [FIELD_COUNT] = INT("count", count, ZC_MSG_HAS_COUNT),
    [FIELD_DELAY] = SECONDS("delay", delay_ms, ZC_MSG_HAS_DELAY),
    [FIELD_TOPIC] = SHORT("topic", topic),
    [FIELD_SCOPE] = SHORT("scope", scope),
    [FIELD_AFTER] = STRING("after", after, 0, NULL),
    [FIELD_FAILED] = STRINGS("failed", failed, 0),
    [FIELD_FILTER] =
        FIELD("filter", ZC_MSG_KIND_FILTER, filter, ZC_MSG_HAS_FILTER_OBJECT, 0,
              "filter is not a string or an object", "filter is not valid UTF-8", NULL),
    [FIELD_RESULT] = FIELD("result", ZC_MSG_KIND_RESULT, result, 0, 0, "result is not an object",
                           "result is not valid UTF-8", NULL),
    [FIELD_HEADERS] =
        FIELD("headers", ZC_MSG_KIND_HEADERS, headers, 0, 0, "headers is not an object of strings",
              "headers is not valid UTF-8", "headers has more than 256 entries"),
    [FIELD_ATTEMPT] = INT("attempt", attempt, ZC_MSG_HAS_ATTEMPT),
    [FIELD_EXPIRES] = INT("expires", expires, ZC_MSG_HAS_EXPIRES),
    [FIELD_DELIVERY] = STRING("delivery", delivery, 0, NULL),
    [FIELD_DELIVERIES] = STRINGS("deliveries", deliveries, ZC_MSG_HAS_DELIVERIES),
};

#define AT(c) [(c) - 'a']

/* First field of a length and first letter. */
static const uint8_t field_first[][26] = {
    [1] = {AT('v') = FIELD_V},
    [2] = {AT('o') = FIELD_OP, AT('i') = FIELD_ID, AT('a') = FIELD_AT, AT('b') = FIELD_BY,
           AT('t') = FIELD_TO},
    [3] = {AT('e') = FIELD_END, AT('m') = FIELD_MAX, AT('t') = FIELD_TTL},
    [4] = {AT('n') = FIELD_NAME, AT('f') = FIELD_FROM, AT('t') = FIELD_TEXT, AT('b') = FIELD_BODY,
           AT('p') = FIELD_PEEK, AT('s') = FIELD_SUBS, AT('c') = FIELD_CODE, AT('w') = FIELD_WAIT},
    [5] = {AT('e') = FIELD_ERROR, AT('l') = FIELD_LEASE, AT('c') = FIELD_COUNT,
           AT('d') = FIELD_DELAY, AT('t') = FIELD_TOPIC, AT('s') = FIELD_SCOPE,
           AT('a') = FIELD_AFTER},
    [6] = {AT('f') = FIELD_FAILED, AT('r') = FIELD_RESULT},
    [7] = {AT('h') = FIELD_HEADERS, AT('a') = FIELD_ATTEMPT, AT('e') = FIELD_EXPIRES},
    [8] = {AT('d') = FIELD_DELIVERY},
    [10] = {AT('d') = FIELD_DELIVERIES},
};

/* Names are short: comparisons of words, which may overlap, are cheaper than a call of memcmp. */
static inline bool field_is(enum field_index i, struct zc_slice key)
{
    const struct zc_msg_field *f = &zc_msg_field_table[i];
    const uint8_t *name = (const uint8_t *)f->name, *other = key.data;
    size_t len = key.len;
    if (len != f->len)
        return false;
    if (len >= 8)
        return memcmp(name, other, 8) == 0 && memcmp(name + len - 8, other + len - 8, 8) == 0;
    if (len >= 4)
        return memcmp(name, other, 4) == 0 && memcmp(name + len - 4, other + len - 4, 4) == 0;
    return name[0] == other[0] && name[len / 2] == other[len / 2] &&
           name[len - 1] == other[len - 1];
}

unsigned zc_msg_field_find(struct zc_slice key)
{
    if (key.len == 0 || key.len >= sizeof(field_first) / sizeof(field_first[0]))
        return FIELD_NONE;
    uint8_t letter = key.data[0] - 'a';
    enum field_index i = letter < 26 ? field_first[key.len][letter] : FIELD_NONE;
    if (i == FIELD_NONE || field_is(i, key))
        return i;
    return field_is(i + 1, key) ? i + 1 : FIELD_NONE;
}

bool zc_msg_field_odd_case(struct zc_slice key)
{
    uint8_t lower[sizeof(zc_msg_field_table[0].name)];
    if (key.len > sizeof(lower))
        return false;
    for (size_t i = 0; i < key.len; i++) {
        uint8_t c = key.data[i];
        lower[i] = c >= 'A' && c <= 'Z' ? c | 0x20 : c;
    }
    return zc_msg_field_find(zc_slice(lower, key.len)) != FIELD_NONE;
}
