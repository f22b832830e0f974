/*
 * Frames of the vectors both ways, where no side of ours writes them or reads them in a session:
 * the relay's login answers from their JSON and nonce and back, both kinds of "this is my home", a
 * packet from its parts.
 */
#include "base/check.h"
#include "derp_relay.h"
#include "test.h"
#include "tunnel/derp_priv.h"
#include "vector.h"

#define HEAD_AND_NONCE (5 + ZC_BOX_NONCE)

/* Sealed by hand as the relay would, opened by hand, and read by the client. */
static void server_info(const char *name, int64_t rate, int64_t burst)
{
    char json_name[40], nonce_name[40], frame_name[40];
    uint8_t payload[256], nonce[24], json[128], opened[128];
    snprintf(json_name, sizeof(json_name), "%s_json", name);
    snprintf(nonce_name, sizeof(nonce_name), "%s_nonce", name);
    snprintf(frame_name, sizeof(frame_name), "%s_frame", name);
    struct vec v = vec_object(vec_section("derp"));
    struct zc_slice text = vec_text(&v, json_name);
    CHECK(text.len > 0 && text.len <= sizeof(json));
    size_t len = text.len;
    memcpy(json, text.data, len);
    CHECK_INT(vec_hex(&v, nonce_name, nonce, sizeof(nonce)), ZC_BOX_NONCE);

    relay_begin();
    memcpy(payload, nonce, sizeof(nonce));
    zc_box_seal(&relay_shared, nonce, zc_slice(json, len), payload + ZC_BOX_NONCE);
    relay_frame(ZC_DERP_SERVER_INFO, payload, ZC_BOX_NONCE + ZC_BOX_TAG + len);
    struct zc_slice frame = relay_member(frame_name);
    CHECK(zc_slice_eq(frame, zc_slice(relay_bytes, relay_len)));

    CHECK(memcmp(frame.data + 5, nonce, sizeof(nonce)) == 0);
    struct zc_slice box = zc_slice(frame.data + HEAD_AND_NONCE, frame.len - HEAD_AND_NONCE);
    CHECK_INT(zc_box_open(&relay_shared, nonce, box, opened), 0);
    CHECK(zc_slice_eq(zc_slice(json, len), zc_slice(opened, box.len - ZC_BOX_TAG)));

    relay_len = 0;
    relay_raw(RELAY_101, strlen(RELAY_101));
    relay_vector("server_key_frame");
    relay_vector(frame_name);
    CHECK(relay_say(ZC_DERP_EVENT_UP));
    CHECK_INT((int64_t)derp->bucket.rate, rate);
    if (rate > 0)
        CHECK_INT((int64_t)derp->bucket.burst, burst);
    relay_end();
}

TEST(derp_server_info_both_ways)
{
    server_info("server_info", 0, 0);
    server_info("server_info_rate", 5000000, 200000);
}

/* A relay never says it; we skip it then. We say false by saying nothing. */
TEST(derp_note_preferred_both_ways)
{
    static const char *const names[] = {"note_preferred_false_frame", "note_preferred_true_frame"};
    struct zc_derp_status status;
    for (uint8_t home = 0; home < 2; home++) {
        struct zc_slice frame = relay_member(names[home]);
        relay_up();
        zc_derp_control(derp, ZC_DERP_NOTE_PREFERRED, zc_slice(&home, 1));
        relay_take(64);
        CHECK(zc_slice_eq(frame, zc_slice(relay_got, relay_got_len)));
        CHECK(frame.len == 6 && frame.data[5] == home);
        relay_vector(names[home]);
        relay_vector("recv_packet_frame");
        CHECK(relay_say(ZC_DERP_EVENT_PACKET));
        zc_derp_status(derp, &status);
        CHECK_INT(status.state, ZC_DERP_UP);
        CHECK_INT(status.skipped, 1);
        relay_end();
    }
}

TEST(derp_packet_both_ways)
{
    struct zc_key peer = relay_key_of("send_packet_dst");
    struct zc_slice payload = relay_member("send_packet_payload");
    struct zc_derp_event ev;
    relay_up();
    CHECK(zc_derp_send(derp, derp_now, &peer, payload));
    relay_take(7);
    CHECK(zc_slice_eq(relay_member("send_packet_frame"), zc_slice(relay_got, relay_got_len)));
    relay_vector("recv_packet_frame");
    CHECK_INT(zc_derp_input(derp, derp_now, relay_bytes, relay_len), relay_len);
    CHECK(relay_event(&ev) && ev.kind == ZC_DERP_EVENT_PACKET);
    CHECK(memcmp(ev.key.b, peer.b, sizeof(peer.b)) == 0);
    CHECK(zc_slice_eq(payload, zc_slice(ev.data, ev.len)));
    relay_end();
}
