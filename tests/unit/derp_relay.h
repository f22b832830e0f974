/* A relay that says what a test wants, with the keys of the vectors; and the client under test. */
#ifndef ZC_TESTS_UNIT_DERP_RELAY_H
#define ZC_TESTS_UNIT_DERP_RELAY_H

#include "crypto/box.h"
#include "crypto/secret.h"
#include "test.h"
#include "tunnel/derp.h"
#include "vector.h"

#define RELAY_101 "HTTP/1.1 101 Switching Protocols\r\nUpgrade: DERP\r\n\r\n"
#define RELAY_BYTES (3u << 20)

static struct zc_derp *derp;
static struct zc_rng derp_rng;
static struct zc_now derp_now;
static struct zc_secret relay_shared;
static uint8_t relay_bytes[RELAY_BYTES]; /* what the relay will say */
static size_t relay_len;
static uint8_t relay_got[RELAY_BYTES]; /* what the client said */
static size_t relay_got_len;

static inline void relay_frame(uint8_t type, const void *payload, size_t len)
{
    uint8_t *p = relay_bytes + relay_len;
    *p++ = type;
    for (int shift = 24; shift >= 0; shift -= 8)
        *p++ = (uint8_t)(len >> shift);
    if (len > 0)
        memcpy(p, payload, len);
    relay_len += 5 + len;
}

static inline void relay_raw(const void *data, size_t len)
{
    memcpy(relay_bytes + relay_len, data, len);
    relay_len += len;
}

/* Bytes of the vectors' member; kept, since the file is read anew for each. */
static inline struct zc_slice relay_member(const char *name)
{
    static struct {
        char name[48];
        uint8_t data[256];
        size_t len;
    } kept[32];
    size_t i = 0;
    while (kept[i].len > 0 && strcmp(kept[i].name, name) != 0)
        vec_need(++i < 32, "too many members");
    if (kept[i].len == 0) {
        struct vec v = vec_object(vec_section("derp"));
        snprintf(kept[i].name, sizeof(kept[i].name), "%s", name);
        kept[i].len = vec_hex(&v, name, kept[i].data, sizeof(kept[i].data));
    }
    return zc_slice(kept[i].data, kept[i].len);
}

static inline void relay_vector(const char *name)
{
    struct zc_slice bytes = relay_member(name);
    relay_raw(bytes.data, bytes.len);
}

static inline struct zc_key relay_key_of(const char *name)
{
    struct zc_slice bytes = relay_member(name);
    struct zc_key key;
    CHECK_INT(bytes.len, 32);
    memcpy(key.b, bytes.data, 32);
    return key;
}

/* Sealed JSON as ServerInfo. */
static inline void relay_info(const char *json)
{
    uint8_t payload[8192] = {7};
    zc_box_seal(&relay_shared, payload, zc_slice_str(json), payload + ZC_BOX_NONCE);
    relay_frame(3, payload, ZC_BOX_NONCE + ZC_BOX_TAG + strlen(json));
}

/* A client with the vector's key, started towards a relay. */
static inline void relay_begin(void)
{
    static const uint8_t seed[32] = "derp";
    struct zc_derp_config config = {.app_name = "tailcat-client", .home = true};
    struct zc_key client = relay_key_of("client_private"), server = relay_key_of("server_private");
    struct zc_secret server_private;
    memcpy(config.private_key.b, client.b, 32);
    memcpy(server_private.b, server.b, 32);
    client = relay_key_of("client_public");
    CHECK_INT(zc_box_shared(&server_private, &client, &relay_shared), 0);
    zc_rng_init(&derp_rng, seed);
    derp_now = (struct zc_now){.mono = {ZC_NS_PER_S}};
    relay_len = relay_got_len = 0;
    derp = zc_derp_new(&config);
    CHECK(derp != NULL);
    zc_derp_start(derp, derp_now, "relay.example", 18443);
}

static inline void relay_end(void)
{
    zc_derp_free(derp);
    derp = NULL;
}

/* Takes the client's output in pieces of cap bytes. */
static inline void relay_take(size_t cap)
{
    size_t n;
    while ((n = zc_derp_output(derp, derp_now, relay_got + relay_got_len, cap)) > 0)
        relay_got_len += n;
}

static inline bool relay_event(struct zc_derp_event *ret_event)
{
    return zc_derp_event(derp, derp_now, &derp_rng, ret_event);
}

/* Says all that is due; the event wanted must be the only one. */
static inline bool relay_say(enum zc_derp_event_kind wanted)
{
    struct zc_derp_event ev = {0}, more;
    size_t used = 0;
    bool got = false;
    for (;;) {
        if (!got)
            got = relay_event(&ev);
        else if (relay_event(&more))
            return false;
        if (used == relay_len)
            break;
        used += zc_derp_input(derp, derp_now, relay_bytes + used, relay_len - used);
    }
    relay_len = 0;
    return (got || relay_event(&ev)) && ev.kind == wanted && !relay_event(&more);
}

/* Says it; no event follows. */
static inline bool relay_say_quiet(void)
{
    struct zc_derp_event ev;
    size_t used = 0;
    while (used < relay_len) {
        used += zc_derp_input(derp, derp_now, relay_bytes + used, relay_len - used);
        if (relay_event(&ev))
            return false;
    }
    relay_len = 0;
    return true;
}

static inline void relay_up(void)
{
    relay_begin();
    relay_raw(RELAY_101, strlen(RELAY_101));
    relay_vector("server_key_frame");
    relay_vector("server_info_frame");
    CHECK(relay_say(ZC_DERP_EVENT_UP));
    relay_take(4096);
    relay_got_len = 0;
}

static inline void relay_wait(int64_t ms)
{
    derp_now.mono = zc_mono_add_ms(derp_now.mono, ms);
}

static inline void relay_tick(void)
{
    zc_derp_tick(derp, derp_now, &derp_rng);
}

#endif
