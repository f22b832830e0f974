/*
 * Any bytes from a relay. The first byte says how far the login went before and in which pieces the
 * bytes come. Whatever they are: events are sound, output is bounded and made of whole frames, and
 * after CLOSED nothing more happens.
 */
#include <string.h>

#include "base/check.h"
#include "crypto/box.h"
#include "crypto/x25519.h"
#include "tunnel/derp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct zc_now now;
static struct zc_rng rng;
static uint8_t out[1 << 17];

static bool check_event(const struct zc_derp_event *ev, bool closed)
{
    volatile uint8_t sum = 0;
    ZC_ASSERT(!closed);
    for (size_t i = 0; i < ev->len; i++)
        sum += ev->data[i];
    (void)sum;
    ZC_ASSERT(ev->len <= ZC_DERP_PACKET_MAX);
    if (ev->kind == ZC_DERP_EVENT_CLOSED || ev->kind == ZC_DERP_EVENT_HEALTH)
        ZC_ASSERT(strlen(ev->text) < ZC_DERP_TEXT_MAX);
    return ev->kind == ZC_DERP_EVENT_CLOSED;
}

/* Feeds bytes in pieces; true: it closed. */
static bool feed(struct zc_derp *d, const uint8_t *data, size_t size, size_t piece)
{
    struct zc_derp_event ev;
    bool closed = false;
    size_t used = 0, taken;
    while (used < size && !closed) {
        size_t n = size - used < piece ? size - used : piece;
        taken = zc_derp_input(d, now, data + used, n);
        used += taken;
        bool event = false;
        while (zc_derp_event(d, now, &rng, &ev)) {
            closed = check_event(&ev, closed);
            event = true;
        }
        ZC_ASSERT(taken > 0 || event || closed);
    }
    return closed;
}

/* What the client has to say is whole frames, once the request is out. */
static void check_output(struct zc_derp *d)
{
    size_t len = 0, n, pos = 0;
    while ((n = zc_derp_output(d, now, out + len, sizeof(out) - len)) > 0)
        len += n;
    ZC_ASSERT(len < 4096);
    if (len > 4 && memcmp(out, "GET ", 4) == 0)
        return;
    while (pos < len) {
        ZC_ASSERT(len - pos >= 5);
        pos += 5 + ((size_t)out[pos + 3] << 8 | out[pos + 4]);
    }
    ZC_ASSERT(pos == len);
}

static void login(struct zc_derp *d, const struct zc_secret *relay, const struct zc_key *client,
                  int steps)
{
    static const char json[] = "{\"version\":2}";
    static const char ok[] = "HTTP/1.1 101 Switching Protocols\r\n\r\n";
    uint8_t key[45] = {1, 0, 0, 0, 40, 'D', 'E', 'R', 'P', 0xf0, 0x9f, 0x94, 0x91};
    uint8_t info[5 + 24 + 16 + sizeof(json) - 1] = {3, 0, 0, 0, 24 + 16 + sizeof(json) - 1};
    struct zc_secret shared;
    struct zc_key public;
    zc_x25519_public(relay, &public);
    memcpy(key + 13, public.b, 32);
    ZC_ASSERT(zc_box_shared(relay, client, &shared) == 0);
    zc_box_seal(&shared, info + 5, zc_slice(json, sizeof(json) - 1), info + 29);
    check_output(d);
    if (steps > 0)
        ZC_ASSERT(!feed(d, (const uint8_t *)ok, sizeof(ok) - 1, SIZE_MAX));
    if (steps > 1)
        ZC_ASSERT(!feed(d, key, sizeof(key), SIZE_MAX));
    if (steps > 2)
        ZC_ASSERT(!feed(d, info, sizeof(info), SIZE_MAX));
    check_output(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct zc_secret relay = {{7}};
    struct zc_derp_config config = {.private_key = {{9}}, .app_name = "tailcat-client"};
    struct zc_derp_event ev;
    struct zc_key client;
    uint8_t seed[32] = {5};
    if (size == 0)
        return 0;
    now = (struct zc_now){.mono = {ZC_NS_PER_S}};
    zc_rng_init(&rng, seed);
    zc_x25519_public(&config.private_key, &client);
    struct zc_derp *d = zc_derp_new(&config);
    ZC_ASSERT(d != NULL);
    zc_derp_start(d, now, "h", 443);
    login(d, &relay, &client, data[0] & 3);
    bool closed = feed(d, data + 1, size - 1, (size_t)(data[0] >> 2) + 1);
    check_output(d);
    for (int i = 0; i < 5 && !closed; i++) {
        struct zc_mono due = zc_derp_deadline(d);
        ZC_ASSERT(due.ns != INT64_MAX && due.ns > now.mono.ns);
        now.mono = due;
        zc_derp_tick(d, now, &rng);
        check_output(d);
        while (zc_derp_event(d, now, &rng, &ev))
            closed = check_event(&ev, closed);
    }
    ZC_ASSERT(closed); /* silence ends it at the latest */
    ZC_ASSERT(zc_derp_deadline(d).ns == INT64_MAX && zc_derp_output(d, now, out, 10) == 0);
    zc_derp_free(d);
    return 0;
}
