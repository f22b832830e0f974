/* tunnel/derp.h: the vectors' frames, cut at every byte; relays that lie; what they are told. */
#include "tunnel/derp.h"

#include "base/check.h"
#include "base/text.h"
#include "derp_relay.h"
#include "test.h"
#include "vector.h"

static const char *const said[] = {
    "recv_packet_frame", "keepalive_frame",
    "ping_frame",        "peer_gone_not_here_frame",
    "health_frame",      "health_clear_frame",
    "pong_frame",        "restarting_frame_1000ms_2000ms",
    "server_info_frame", "send_packet_frame",
    "recv_packet_frame",
};

/* A relay's whole speech. */
static void speech(void)
{
    relay_len = 0;
    relay_raw(RELAY_101, strlen(RELAY_101));
    relay_vector("server_key_frame");
    relay_vector("server_info_frame");
    for (size_t i = 0; i < ZC_ARRAY_LEN(said); i++)
        relay_vector(said[i]);
}

static size_t note(char *log, size_t len, const struct zc_derp_event *ev)
{
    char hex[256] = "";
    CHECK(ev->len <= 100);
    zc_text_hex(hex, zc_slice(ev->data, ev->len));
    return len + (size_t)sprintf(log + len, "%d %02x%02x %s %d %u %u '%s'\n", ev->kind,
                                 ev->key.b[0], ev->key.b[31], hex, ev->was_here, ev->in_ms,
                                 ev->for_ms, ev->text != NULL ? ev->text : "-");
}

/* Feeds the speech in pieces and notes the events. */
static void listen(char *log, size_t cut, size_t piece)
{
    static uint8_t words[RELAY_BYTES / 64];
    struct zc_derp_event ev;
    size_t len = 0, used = 0;
    log[0] = '\0';
    relay_begin();
    speech();
    size_t total = relay_len;
    CHECK(total < sizeof(words));
    memcpy(words, relay_bytes, total);
    while (used < total) {
        size_t n = used < cut ? cut - used : total - used;
        n = n < piece ? n : piece;
        used += zc_derp_input(derp, derp_now, words + used, n);
        while (relay_event(&ev))
            len = note(log, len, &ev);
        relay_take(64);
    }
    relay_end();
}

TEST(derp_speech_cut_everywhere)
{
    static char whole[8192], parts[8192];
    static uint8_t got[4096];
    listen(whole, 0, SIZE_MAX);
    size_t got_len = relay_got_len, total;
    memcpy(got, relay_got, got_len);
    speech();
    total = relay_len;
    CHECK(strcmp(whole, "0 0000  0 0 0 '-'\n"
                        "1 ab12 6d656f7702 0 0 0 '-'\n"
                        "2 ab12  0 0 0 '-'\n"
                        "3 0000  0 0 0 'dup'\n"
                        "3 0000  0 0 0 ''\n"
                        "4 0000  0 1000 2000 '-'\n"
                        "1 ab12 6d656f7702 0 0 0 '-'\n") == 0);
    for (size_t cut = 1; cut < total; cut++) {
        listen(parts, cut, SIZE_MAX);
        CHECK(strcmp(whole, parts) == 0);
        CHECK(relay_got_len == got_len && memcmp(relay_got, got, got_len) == 0);
    }
    for (size_t piece = 1; piece < 40; piece++) {
        listen(parts, 0, piece);
        CHECK(strcmp(whole, parts) == 0);
        CHECK(relay_got_len == got_len && memcmp(relay_got, got, got_len) == 0);
    }
}

/* What the client says at login, against the vectors. */
TEST(derp_login_bytes)
{
    static const char request[] =
        "GET /derp HTTP/1.1\r\nHost: relay.example:18443\r\n"
        "User-Agent: zmqcat\r\nConnection: Upgrade\r\nUpgrade: DERP\r\n\r\n";
    struct vec v = vec_object(vec_section("derp"));
    char json[256];
    uint8_t frame[512], text[256], note_frame[6], pong[13];
    struct zc_derp_status status;
    relay_begin();
    CHECK_INT(zc_derp_room(derp), ZC_DERP_QUEUE_MAX);
    struct zc_key dst = relay_key_of("send_packet_dst");
    CHECK(zc_derp_send(derp, derp_now, &dst, zc_slice("meow\2", 5)));
    relay_take(7);
    CHECK_INT(relay_got_len, strlen(request)); /* packets wait for the login */
    CHECK(memcmp(relay_got, request, strlen(request)) == 0);
    relay_got_len = 0;
    relay_raw(RELAY_101, strlen(RELAY_101));
    relay_vector("server_key_frame");
    CHECK(relay_say_quiet());
    relay_take(7);

    v = vec_object(vec_section("derp"));
    size_t info_len = vec_hex(&v, "client_info_frame", frame, sizeof(frame));
    CHECK_INT(relay_got_len, info_len + 6 + 5 + 32 + 5);
    CHECK(memcmp(relay_got, frame, 5 + 32) == 0);
    struct zc_slice box = zc_slice(relay_got + 5 + 32 + 24, info_len - 5 - 32 - 24);
    CHECK_INT(zc_box_open(&relay_shared, relay_got + 5 + 32, box, text), 0);
    struct zc_slice want = vec_text(&v, "client_info_json");
    CHECK(zc_slice_eq(want, zc_slice(text, box.len - 16)));
    /* The same under the vector's nonce is the vector. */
    vec_hex(&v, "client_info_nonce", relay_got + 5 + 32, 24);
    memcpy(json, text, box.len - 16);
    zc_box_seal(&relay_shared, relay_got + 5 + 32, zc_slice(json, box.len - 16),
                relay_got + 5 + 32 + 24);
    CHECK(memcmp(relay_got, frame, info_len) == 0);
    vec_hex(&v, "note_preferred_true_frame", note_frame, 6);
    CHECK(memcmp(relay_got + info_len, note_frame, 6) == 0);
    CHECK(vec_is(&v, "send_packet_frame", relay_got + info_len + 6, 5 + 32 + 5));

    zc_derp_status(derp, &status);
    CHECK_INT(status.state, ZC_DERP_LOGIN);
    CHECK(vec_is(&v, "server_public", status.relay_key.b, 32));
    relay_vector("server_info_frame");
    CHECK(relay_say(ZC_DERP_EVENT_UP));
    relay_got_len = 0;
    relay_vector("ping_frame");
    CHECK(relay_say_quiet());
    relay_take(64);
    v = vec_object(vec_section("derp"));
    CHECK_INT(vec_hex(&v, "pong_frame", pong, sizeof(pong)), 13);
    CHECK(relay_got_len == 13 && memcmp(relay_got, pong, 13) == 0);
    relay_end();
}

TEST(derp_host_header)
{
    static const struct {
        const char *host;
        uint16_t port;
        const char *line;
    } cases[] = {
        {"a.example", 443, "\r\nHost: a.example\r\n"},
        {"a.example", 8443, "\r\nHost: a.example:8443\r\n"},
        {"::1", 443, "\r\nHost: [::1]\r\n"},
        {"::1", 1, "\r\nHost: [::1]:1\r\n"},
    };
    for (size_t i = 0; i < ZC_ARRAY_LEN(cases); i++) {
        relay_begin();
        zc_derp_start(derp, derp_now, cases[i].host, cases[i].port);
        relay_take(1000);
        relay_got[relay_got_len] = '\0';
        CHECK(strstr((char *)relay_got, cases[i].line) != NULL);
        relay_end();
    }
}

TEST(derp_upgrade_refused)
{
    static const struct {
        const char *answer, *words;
    } cases[] = {
        {"HTTP/1.1 404 Not Found\r\n\r\n", "404 Not Found"},
        {"HTTP/1.1 426 Upgrade Required\r\n\r\n", "took the upgrade out"},
        {"HTTP/1.1 200 OK\r\n\r\n<html>", "is it a DERP relay"},
        {"SSH-2.0-x\r\n", "not HTTP"},
    };
    for (size_t i = 0; i < ZC_ARRAY_LEN(cases); i++) {
        struct zc_derp_event ev;
        relay_begin();
        size_t len = strlen(cases[i].answer);
        CHECK_INT(zc_derp_input(derp, derp_now, (const uint8_t *)cases[i].answer, len), len);
        CHECK(relay_event(&ev) && ev.kind == ZC_DERP_EVENT_CLOSED && ev.why == ZC_DERP_WHY_HTTP);
        CHECK(strstr(ev.text, cases[i].words) != NULL);
        CHECK(!relay_event(&ev));
        CHECK_INT(zc_derp_output(derp, derp_now, relay_got, 100), 0);
        CHECK_INT(zc_derp_deadline(derp).ns, INT64_MAX);
        zc_derp_lost(derp, derp_now, "later"); /* told once */
        CHECK(!relay_event(&ev));
        relay_end();
    }
}

/* Every byte of key and login answer changed: never up with a relay that is not the one. */
TEST(derp_login_damaged)
{
    relay_begin();
    relay_raw(RELAY_101, strlen(RELAY_101));
    size_t start = relay_len;
    relay_vector("server_key_frame");
    relay_vector("server_info_frame");
    size_t end = relay_len;
    relay_end();
    for (size_t i = start; i < end; i++) {
        struct zc_derp_event ev;
        bool up = false;
        relay_begin();
        relay_raw(RELAY_101, strlen(RELAY_101));
        relay_vector("server_key_frame");
        relay_vector("server_info_frame");
        relay_bytes[i] ^= 0x40;
        CHECK_INT(zc_derp_input(derp, derp_now, relay_bytes, relay_len), relay_len);
        while (relay_event(&ev))
            up = up || ev.kind == ZC_DERP_EVENT_UP;
        CHECK(!up);
        relay_end();
    }
}

TEST(derp_protocol_faults)
{
    static const uint8_t zero_key[40] = {'D', 'E', 'R', 'P', 0xf0, 0x9f, 0x94, 0x91};
    uint8_t long_key[1100];
    struct zc_derp_status status;
    memcpy(long_key, zero_key, 40);
    long_key[8] = 9; /* the base point: a usable key */
    for (int i = 0; i < 8; i++) {
        relay_begin();
        relay_raw(RELAY_101, strlen(RELAY_101));
        if (i == 0)
            relay_vector("server_info_frame"); /* not the key first */
        else if (i == 1)
            relay_frame(1, zero_key, 40); /* a key that gives no secret */
        else if (i == 2)
            relay_frame(1, long_key, 39);
        else if (i == 3)
            relay_frame(1, long_key, 1025);
        else
            relay_vector("server_key_frame");
        if (i == 4)
            relay_info("{\"version\":2"); /* no JSON */
        else if (i == 5)
            relay_info("{\"TokenBucketBytesPerSecond\":\"x\"}");
        else if (i == 6)
            relay_frame(3, long_key, 39);
        else if (i == 7)
            relay_raw("\x05\x00\x10\x00\x01", 5); /* a frame of 1 MiB and a byte */
        CHECK(relay_say(ZC_DERP_EVENT_CLOSED));
        relay_end();
    }
    relay_begin();
    relay_raw(RELAY_101, strlen(RELAY_101));
    relay_frame(1, long_key, 1024); /* more than the key: fine */
    CHECK(relay_say_quiet());
    zc_derp_status(derp, &status);
    CHECK_INT(status.state, ZC_DERP_LOGIN);
    relay_end();
}

/* Frames that are skipped, of any type and length, and packets between them. */
TEST(derp_skips_what_it_must)
{
    static uint8_t junk[ZC_DERP_FRAME_MAX];
    static const size_t lens[] = {
        0, 1, 7, 31, 32, 65536 + 32, 65536 + 33, 200000, ZC_DERP_FRAME_MAX};
    struct zc_derp_status status;
    relay_up();
    uint64_t frames = 0;
    for (size_t i = 0; i < ZC_ARRAY_LEN(lens); i++) {
        relay_frame(0x77, junk, lens[i]);
        relay_frame(0x09, junk, lens[i]); /* mesh */
        relay_vector("recv_packet_frame");
        CHECK(relay_say(ZC_DERP_EVENT_PACKET));
        frames += 2;
    }
    relay_frame(0x05, junk, 31);
    relay_frame(0x08, junk, 31);
    relay_frame(0x12, junk, 7);
    relay_frame(0x13, junk, 7);
    relay_frame(0x15, junk, 7);
    relay_frame(0x05, junk, 65536 + 33);
    CHECK(relay_say_quiet());
    relay_take(100);
    CHECK_INT(relay_got_len, 0);
    zc_derp_status(derp, &status);
    CHECK_INT(status.skipped, frames + 6);
    CHECK_INT(status.packets_in, ZC_ARRAY_LEN(lens));
    relay_frame(0x05, junk, 65536 + 32);
    CHECK(relay_say(ZC_DERP_EVENT_PACKET));
    relay_frame(0x05, junk, 32);
    CHECK(relay_say(ZC_DERP_EVENT_PACKET));
    relay_frame(0x08, junk, 32);
    CHECK(relay_say(ZC_DERP_EVENT_PEER_GONE));
    relay_end();
}

TEST(derp_peer_gone_reasons)
{
    static const bool was_here[] = {true, false, false};
    struct zc_derp_event ev;
    uint8_t payload[34] = {0xab};
    relay_up();
    for (uint8_t reason = 0; reason < 3; reason++) {
        payload[32] = reason;
        relay_frame(0x08, payload, 33u + (reason == 2)); /* more bytes are ignored */
        zc_derp_input(derp, derp_now, relay_bytes, relay_len);
        relay_len = 0;
        CHECK(relay_event(&ev) && ev.kind == ZC_DERP_EVENT_PEER_GONE);
        CHECK(ev.key.b[0] == 0xab && ev.was_here == was_here[reason]);
    }
    relay_frame(0x08, payload, 32); /* an old relay names none */
    zc_derp_input(derp, derp_now, relay_bytes, relay_len);
    CHECK(relay_event(&ev) && ev.was_here);
    relay_end();
}

/* A flood of pings costs a bounded answer. */
TEST(derp_ping_flood)
{
    relay_up();
    for (int i = 0; i < 100000; i++)
        relay_frame(0x12, "pingpong", 8);
    CHECK(relay_say_quiet());
    relay_take(100);
    CHECK(relay_got_len > 0 && relay_got_len <= 1024 && relay_got_len % 13 == 0);
    relay_end();
}

/* Long texts, and text with zero bytes. */
TEST(derp_health_text)
{
    struct zc_derp_event ev;
    char text[400];
    relay_up();
    memset(text, 'h', sizeof(text));
    relay_frame(0x14, text, sizeof(text));
    zc_derp_input(derp, derp_now, relay_bytes, relay_len);
    CHECK(relay_event(&ev) && ev.kind == ZC_DERP_EVENT_HEALTH);
    CHECK_INT(strlen(ev.text), ZC_DERP_TEXT_MAX - 1);
    relay_end();
}

/* Random bytes at every stage end in a close or wait for more; nothing else comes of them. */
TEST(derp_noise)
{
    for (int round = 0; round < 3000; round++) {
        struct zc_derp_event ev;
        uint8_t noise[300];
        if (round % 2 == 0)
            relay_begin();
        else
            relay_up();
        derp_rng.block = (uint64_t)round * 1000;
        derp_rng.used = sizeof(derp_rng.pool);
        for (int i = 0; i < 20; i++) {
            size_t used = 0;
            zc_rng_bytes(&derp_rng, noise, sizeof(noise));
            if (round % 4 == 3) {
                memset(noise + 1, 0, 3);
                noise[0] &= 0x1f;
            }
            while (used < sizeof(noise)) {
                used += zc_derp_input(derp, derp_now, noise + used, sizeof(noise) - used);
                while (relay_event(&ev))
                    CHECK(ev.kind != ZC_DERP_EVENT_UP);
            }
            relay_got_len = 0;
            relay_take(1000);
        }
        relay_end();
    }
}
