/*
 * The fields of a message: what each is called, what it may be and where it goes. For msg_decode.c.
 */
#ifndef ZC_ZMQC_MSG_FIELD_H
#define ZC_ZMQC_MSG_FIELD_H

#define ZC_MSG_ID_LONG "id is longer than 1,024 bytes"

#include "zmqc/msg.h"

enum zc_msg_kind {
    ZC_MSG_KIND_VERSION,
    ZC_MSG_KIND_STRING,
    ZC_MSG_KIND_BODY,
    ZC_MSG_KIND_INT,
    ZC_MSG_KIND_MAX,
    ZC_MSG_KIND_SECONDS,
    ZC_MSG_KIND_BOOL,
    ZC_MSG_KIND_HEADERS,
    ZC_MSG_KIND_STRINGS,
    ZC_MSG_KIND_RESULT,
    ZC_MSG_KIND_FILTER,
};

struct zc_msg_field {
    char name[12];
    uint8_t len;
    uint8_t kind;      /* enum zc_msg_kind */
    uint16_t offset;   /* in struct zc_msg */
    uint16_t has;      /* bit to set, or 0 */
    uint16_t most;     /* bytes of a string, or 0 */
    const char *bad;   /* structural: wrong type or form */
    const char *utf8;  /* unsound: not UTF-8 */
    const char *range; /* unsound: too long, too large */
};

/* Index of v. */
#define ZC_MSG_FIELD_V 1

extern const struct zc_msg_field zc_msg_field_table[];
/* Index in the table, 1 to 63, of the field called key; 0 when there is none. */
unsigned zc_msg_field_find(struct zc_slice key);
/* key is a field's name but for the case of its letters. The original took such keys, so silence
 * would lose a field that the sender means. */
bool zc_msg_field_odd_case(struct zc_slice key);

#endif
