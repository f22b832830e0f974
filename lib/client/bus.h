/*
 * One connection of the client library: what zmqcat.h keeps opaque. Private to lib/client.
 */
#ifndef ZC_CLIENT_BUS_H
#define ZC_CLIENT_BUS_H

#include "base/address.h"
#include "base/buf.h"
#include "base/list.h"
#include "client/zmqcat.h"
#include "zmqc/msg.h"

#define ZC_BUS_WHY_MAX 1024
#define ZC_BUS_WARNING_MAX 512
#define ZC_BUS_CODE_MAX 32
#define ZC_BUS_ID_MAX 40

/* Deliveries kept for zmqcat_next while another call waits for its answer. */
#define ZC_BUS_KEPT_MAX 4096
#define ZC_BUS_KEPT_BYTES_MAX (UINT64_C(64) << 20)

/* Time an answer may take that does not wait for a message. Longer than a spoke holds its clients
 * while the hub cannot be reached (30 s). */
#define ZC_BUS_ANSWER_MS 60000
/* An answer that takes nothing but a daemon that runs. */
#define ZC_BUS_STATUS_MS 10000
/* Added to a wait that the hub ends itself, before we give up on the hub. */
#define ZC_BUS_GUARD_MS 5000

/* The JSON of a delivery, not yet decoded. */
struct zc_bus_kept {
    struct zc_list link;
    size_t len;
    uint8_t data[];
};

struct zmqcat {
    int fd;               /* -1 once closed */
    zmqcat_poll_fn *poll; /* NULL: poll(2) */
    void *poll_data;
    bool subscribed; /* msg frames without a delivery are the subscription's */
    char *filter;    /* of sub, reserve and ready, or NULL */
    /* zmqcat_ask whose outcome was not given yet: msg frames are theirs. */
    uint32_t asked;
    uint64_t put_first, put_next; /* zmqcat_put_start: numbers of those without an answer */
    char why[ZC_BUS_WHY_MAX];
    char code[ZC_BUS_CODE_MAX];
    char warning[ZC_BUS_WARNING_MAX];
    char address[ZC_ADDRESS_TEXT_MAX];

    char id_prefix[17]; /* random, so that ids of two connections never meet */
    uint64_t id_last;
    char id[ZC_BUS_ID_MAX];          /* the last one made */
    uint8_t want[ZC_MSG_STRING_MAX]; /* id of the request in progress */
    size_t want_len;

    struct zc_buf rx;
    size_t rx_used; /* bytes of rx before this are done with; moved away by the next read */

    struct zc_list kept;
    size_t kept_count;
    uint64_t kept_bytes;
    uint64_t dropped;
    struct zc_bus_kept *current; /* the kept frame that msg points into */

    struct zc_msg msg; /* last decoded frame */
    struct zc_msg out; /* request being made */
    struct zmqcat_header headers[ZC_MSG_HEADERS_CAP];
};

#endif
