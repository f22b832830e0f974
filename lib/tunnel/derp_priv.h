/* What the files of the relay client share; see derp.h. */
#ifndef ZC_TUNNEL_DERP_PRIV_H
#define ZC_TUNNEL_DERP_PRIV_H

#include "tunnel/derp.h"
#include "tunnel/derp_queue.h"
#include "tunnel/http1.h"

#define ZC_DERP_HEAD 5 /* bytes before a frame's payload */
#define ZC_DERP_KEY_LEN 32
/* The longest frame that is kept, and a TLS record behind it. */
#define ZC_DERP_RX_CAP (ZC_DERP_HEAD + ZC_DERP_KEY_LEN + ZC_DERP_PACKET_MAX + 16384)
#define ZC_DERP_CONTROL_CAP 1024

enum zc_derp_type {
    ZC_DERP_SERVER_KEY = 0x01,
    ZC_DERP_CLIENT_INFO = 0x02,
    ZC_DERP_SERVER_INFO = 0x03,
    ZC_DERP_SEND_PACKET = 0x04,
    ZC_DERP_RECV_PACKET = 0x05,
    ZC_DERP_KEEP_ALIVE = 0x06,
    ZC_DERP_NOTE_PREFERRED = 0x07,
    ZC_DERP_PEER_GONE = 0x08,
    ZC_DERP_PING = 0x12,
    ZC_DERP_PONG = 0x13,
    ZC_DERP_HEALTH = 0x14,
    ZC_DERP_RESTARTING = 0x15,
};

/* The bytes a second that the relay allows us; rate 0: any. */
struct zc_derp_bucket {
    double rate;
    double burst;
    double tokens;
    struct zc_mono at;
};

struct zc_derp {
    struct zc_derp_config config;
    struct zc_key own_key;
    enum zc_derp_state state;
    bool closed_due; /* CLOSED is not told yet */
    enum zc_derp_why why;
    char text[ZC_DERP_TEXT_MAX];

    struct zc_mono started_at;
    struct zc_mono heard_at;    /* the last bytes from the relay */
    struct zc_mono unheard_at;  /* the first packet that went out since; ZC_NEVER: none */
    struct zc_mono answer_till; /* a ping is out: until then something must come; else ZC_NEVER */
    struct zc_mono pinged_at;
    uint8_t ping[8];

    struct zc_http1 http;
    struct zc_secret shared; /* box key with the relay */
    struct zc_derp_bucket bucket;
    struct zc_derp_status status; /* its state is not kept up */

    uint8_t control[ZC_DERP_CONTROL_CAP]; /* whole frames, sent before packets */
    size_t control_len;
    size_t begun; /* length that zc_derp_begin allowed; 0: not begun */
    struct zc_derp_queue queue;

    size_t skip; /* bytes of a long frame that are still to come */
    size_t rx_pos;
    size_t rx_len; /* end of what is there */
    uint8_t rx[ZC_DERP_RX_CAP];
};

/* text: NULL leaves d->text as it is. */
void zc_derp_close(struct zc_derp *d, enum zc_derp_why why, const char *text);
/* Queues a control frame; one that does not fit is left out. */
void zc_derp_control(struct zc_derp *d, enum zc_derp_type type, struct zc_slice payload);
void zc_derp_ping(struct zc_derp *d, struct zc_now now, struct zc_rng *rng, int64_t limit_ms);

/* Login, in order. Each moves the state or closes. */
void zc_derp_login_request(struct zc_derp *d, const char *host, uint16_t port);
void zc_derp_login_upgraded(struct zc_derp *d); /* http is complete or has an error */
void zc_derp_login_key(struct zc_derp *d, struct zc_rng *rng, struct zc_slice payload);
/* Also accepted again later. */
void zc_derp_login_info(struct zc_derp *d, struct zc_now now, struct zc_slice payload);

/* Takes frames out of rx until one is an event. */
bool zc_derp_frame(struct zc_derp *d, struct zc_now now, struct zc_rng *rng,
                   struct zc_derp_event *ret_event);

#endif
