/*
 * The login at a relay: HTTP upgrade, the relay's key, who we are, what it allows us.
 *
 *   GET /derp, Upgrade: DERP -->
 *                            <-- 101
 *                            <-- ServerKey: "DERP" f0 9f 94 91, key (32)
 *   ClientInfo: key (32), nonce (24), box of JSON -->
 *   NotePreferred, packets -->
 *                            <-- ServerInfo: nonce (24), box of JSON
 */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "crypto/box.h"
#include "tunnel/derp_priv.h"
#include "tunnel/jtree.h"

static const uint8_t login_magic[8] = {'D', 'E', 'R', 'P', 0xf0, 0x9f, 0x94, 0x91};

#define INFO_MAX 4096 /* bytes of JSON that a relay may send */
#define KEY_FRAME_MAX 1024
#define RATE_MAX INT64_C(100000000000) /* bytes a second; beyond it there is no limit worth one */
#define BURST_MIN 4096                 /* less would let no packet pass at all */

void zc_derp_login_request(struct zc_derp *d, const char *host, uint16_t port)
{
    const bool literal6 = strchr(host, ':') != NULL;
    char suffix[8] = "";
    ZC_ASSERT(host[0] != '\0' && strlen(host) <= 255);
    if (port != 443)
        snprintf(suffix, sizeof(suffix), ":%u", port);
    int n = snprintf((char *)d->control, sizeof(d->control),
                     "GET /derp HTTP/1.1\r\n"
                     "Host: %s%s%s%s\r\n"
                     "User-Agent: zmqcat\r\n"
                     "Connection: Upgrade\r\n"
                     "Upgrade: DERP\r\n"
                     "\r\n",
                     literal6 ? "[" : "", host, literal6 ? "]" : "", suffix);
    d->control_len = (size_t)n;
}

void zc_derp_login_upgraded(struct zc_derp *d)
{
    const struct zc_http1 *h = &d->http;
    if (h->error != NULL) {
        zc_derp_close(d, ZC_DERP_WHY_HTTP, h->error);
        return;
    }
    if (h->status == 101) {
        d->state = ZC_DERP_KEY;
        return;
    }
    snprintf(d->text, sizeof(d->text), "the relay answered HTTP %d%s%.*s%s", h->status,
             h->reason.len > 0 ? " " : "", (int)(h->reason.len < 80 ? h->reason.len : 80),
             h->reason.len > 0 ? (const char *)h->reason.data : "",
             h->status == 426 ? ": something between us and it took the upgrade out"
                              : ": is it a DERP relay?");
    zc_derp_close(d, ZC_DERP_WHY_HTTP, NULL);
}

/* Key, nonce and sealed JSON. */
static void login_client_info(struct zc_derp *d, struct zc_rng *rng)
{
    uint8_t info[ZC_DERP_KEY_LEN + ZC_BOX_NONCE + ZC_BOX_TAG + 128];
    char json[128];
    uint8_t *nonce = info + ZC_DERP_KEY_LEN;
    int n = snprintf(json, sizeof(json), "{\"version\":2,\"CanAckPings\":true,\"AppName\":\"%s\"}",
                     d->config.app_name);
    ZC_ASSERT(n > 0 && (size_t)n < sizeof(json));
    memcpy(info, d->own_key.b, ZC_DERP_KEY_LEN);
    zc_rng_bytes(rng, nonce, ZC_BOX_NONCE);
    zc_box_seal(&d->shared, nonce, zc_slice(json, (size_t)n), nonce + ZC_BOX_NONCE);
    zc_derp_control(d, ZC_DERP_CLIENT_INFO,
                    zc_slice(info, ZC_DERP_KEY_LEN + ZC_BOX_NONCE + ZC_BOX_TAG + (size_t)n));
}

void zc_derp_login_key(struct zc_derp *d, struct zc_rng *rng, struct zc_slice payload)
{
    static const uint8_t home[1] = {1};
    struct zc_key key;
    if (payload.len < sizeof(login_magic) + sizeof(key.b) || payload.len > KEY_FRAME_MAX ||
        memcmp(payload.data, login_magic, sizeof(login_magic)) != 0) {
        zc_derp_close(d, ZC_DERP_WHY_PROTOCOL, "the relay's key frame is none");
        return;
    }
    memcpy(key.b, payload.data + sizeof(login_magic), sizeof(key.b));
    if (zc_box_shared(&d->config.private_key, &key, &d->shared) != 0) {
        zc_derp_close(d, ZC_DERP_WHY_PROTOCOL, "the relay's key is not a usable one");
        return;
    }
    d->status.relay_key = key;
    d->state = ZC_DERP_LOGIN;
    login_client_info(d, rng);
    if (d->config.home)
        zc_derp_control(d, ZC_DERP_NOTE_PREFERRED, zc_slice(home, sizeof(home)));
}

/* False: not what a relay says. */
static bool login_read_info(struct zc_derp *d, struct zc_now now, struct zc_slice json)
{
    int64_t version = 0, rate = 0, burst = 0;
    const char *why;
    struct cJSON *tree;
    if (zc_jtree_parse(json, 256, &tree, &why) != 0)
        return false;
    bool good = zc_jtree_int(tree, "version", 0, INT32_MAX, &version) &&
                zc_jtree_int(tree, "TokenBucketBytesPerSecond", 0, INT64_MAX, &rate) &&
                zc_jtree_int(tree, "TokenBucketBytesBurst", 0, INT64_MAX, &burst);
    zc_jtree_free(tree, false);
    if (rate > RATE_MAX)
        rate = 0;
    d->bucket.rate = (double)rate;
    d->bucket.burst = (double)(burst > BURST_MIN ? burst : BURST_MIN);
    d->bucket.tokens = d->bucket.burst;
    d->bucket.at = now.mono;
    return good;
}

void zc_derp_login_info(struct zc_derp *d, struct zc_now now, struct zc_slice payload)
{
    uint8_t json[INFO_MAX];
    if (payload.len < ZC_BOX_NONCE + ZC_BOX_TAG ||
        payload.len > ZC_BOX_NONCE + ZC_BOX_TAG + sizeof(json)) {
        zc_derp_close(d, ZC_DERP_WHY_PROTOCOL, "the relay's login answer is too short or too long");
        return;
    }
    struct zc_slice box = zc_slice(payload.data + ZC_BOX_NONCE, payload.len - ZC_BOX_NONCE);
    if (zc_box_open(&d->shared, payload.data, box, json) != 0) {
        zc_derp_close(d, ZC_DERP_WHY_PROTOCOL, "the relay's login answer is not sealed for us");
        return;
    }
    if (!login_read_info(d, now, zc_slice(json, box.len - ZC_BOX_TAG)))
        zc_derp_close(d, ZC_DERP_WHY_PROTOCOL, "the relay's login answer cannot be understood");
}
