/* tunnel/derp.h: the send queue, the relay's rate, timers and pings. */
#include "base/check.h"
#include "derp_relay.h"
#include "test.h"
#include "tunnel/derp.h"
#include "vector.h"

static struct zc_key peer = {{9, 8, 7}};

static bool send_number(uint32_t n, size_t len)
{
    uint8_t packet[4000] = {0};
    memcpy(packet, &n, sizeof(n));
    return zc_derp_send(derp, derp_now, &peer, zc_slice(packet, len));
}

/* Numbers of the packets in what the client said; checks the frames. */
static size_t numbers(uint32_t *ret_numbers, size_t cap)
{
    size_t pos = 0, count = 0;
    while (pos < relay_got_len) {
        const uint8_t *p = relay_got + pos;
        CHECK(relay_got_len - pos >= 5);
        size_t len = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
        CHECK(relay_got_len - pos - 5 >= len);
        if (p[0] == 4) {
            CHECK(len >= 36 && memcmp(p + 5, peer.b, 32) == 0);
            CHECK(count < cap);
            memcpy(&ret_numbers[count++], p + 37, 4);
        }
        pos += 5 + len;
    }
    CHECK_INT(pos, relay_got_len);
    relay_got_len = 0;
    return count;
}

TEST(derp_queue_drops_the_oldest)
{
    uint32_t got[64];
    struct zc_derp_status status;
    relay_up();
    for (uint32_t i = 0; i < 40; i++) {
        CHECK_INT(zc_derp_room(derp), i < 32 ? 32 - i : 0);
        CHECK(send_number(i, 100));
    }
    relay_take(1000);
    CHECK_INT(numbers(got, 64), 32);
    for (uint32_t i = 0; i < 32; i++)
        CHECK_INT(got[i], i + 8);
    zc_derp_status(derp, &status);
    CHECK_INT(status.dropped_queue, 8);
    CHECK_INT(status.packets_out, 40);
    CHECK_INT(zc_derp_room(derp), 32);
    relay_end();
}

/* The one that is partly out stays, and control frames wait for its end. */
TEST(derp_queue_partly_sent)
{
    uint32_t got[64];
    relay_up();
    CHECK(send_number(0, 500));
    relay_got_len = zc_derp_output(derp, derp_now, relay_got, 100);
    CHECK_INT(relay_got_len, 100);
    CHECK_INT(zc_derp_room(derp), 32);
    for (uint32_t i = 1; i <= 40; i++)
        CHECK(send_number(i, 50));
    zc_derp_probe(derp, derp_now, &derp_rng, 3000);
    relay_take(7);
    CHECK_INT(relay_got[537], 0x12); /* the ping right after it */
    CHECK_INT(numbers(got, 64), 33);
    CHECK_INT(got[0], 0);
    for (uint32_t i = 1; i < 33; i++)
        CHECK_INT(got[i], i + 8);
    relay_end();
}

/* Packets outlive the connection; the one that was partly out is sent whole. */
TEST(derp_queue_outlives_connections)
{
    uint32_t got[64];
    struct zc_derp_event ev;
    relay_up();
    for (uint32_t i = 0; i < 32; i++)
        CHECK(send_number(i, 50));
    CHECK_INT(zc_derp_output(derp, derp_now, relay_got, 10), 10);
    CHECK(send_number(32, 50));
    zc_derp_lost(derp, derp_now, NULL);
    CHECK(relay_event(&ev) && ev.kind == ZC_DERP_EVENT_CLOSED && ev.why == ZC_DERP_WHY_STREAM);
    CHECK_INT(zc_derp_output(derp, derp_now, relay_got, 10), 0);
    CHECK(send_number(33, 50));
    CHECK_INT(zc_derp_input(derp, derp_now, (const uint8_t *)"late", 4), 4);
    CHECK(!relay_event(&ev));
    zc_derp_start(derp, derp_now, "relay.example", 443);
    CHECK_INT(zc_derp_room(derp), 0);
    relay_got_len = 0;
    relay_take(50);
    CHECK(memcmp(relay_got, "GET ", 4) == 0);
    relay_got_len = 0;
    relay_len = 0;
    relay_raw(RELAY_101, strlen(RELAY_101));
    relay_vector("server_key_frame");
    CHECK(relay_say_quiet());
    relay_take(50);
    CHECK_INT(numbers(got, 64), 32);
    for (uint32_t i = 0; i < 32; i++)
        CHECK_INT(got[i], i + 2);
    relay_end();
}

TEST(derp_build_in_place)
{
    uint32_t got[8];
    relay_up();
    CHECK(zc_derp_begin(derp, derp_now, &peer, ZC_DERP_PACKET_MAX + 1) == NULL);
    uint8_t *p = zc_derp_begin(derp, derp_now, &peer, 2000);
    CHECK(p != NULL);
    p = zc_derp_begin(derp, derp_now, &peer, ZC_DERP_PACKET_MAX); /* the first is forgotten */
    CHECK(p != NULL);
    memset(p, 0xee, ZC_DERP_PACKET_MAX);
    memcpy(p, "\5\0\0\0", 4);
    zc_derp_commit(derp, derp_now, ZC_DERP_PACKET_MAX);
    CHECK(send_number(6, 4));
    relay_take(1 << 20);
    CHECK_INT(relay_got_len, 37 + 65536 + 41);
    CHECK_INT(numbers(got, 8), 2);
    CHECK(got[0] == 5 && got[1] == 6);
    relay_end();
}

/* Against a plain list: whatever is sent and taken in whatever pieces, what comes out is what went
 * in, in order, less the oldest that had to go. */
TEST(derp_queue_random)
{
    static uint32_t got[200000];
    struct zc_derp_status status;
    uint32_t sent = 0;
    relay_up();
    for (int round = 0; round < 20000; round++) {
        uint64_t r = zc_rng_u64(&derp_rng);
        for (uint64_t i = r % 5; i > 0; i--)
            CHECK(send_number(sent++, 4 + (r >> 8) % 300));
        if (r >> 32 & 1)
            relay_got_len +=
                zc_derp_output(derp, derp_now, relay_got + relay_got_len, 1 + (r >> 33) % 700);
        if (relay_got_len > RELAY_BYTES - 20000)
            break;
    }
    relay_take(100);
    size_t n = numbers(got, ZC_ARRAY_LEN(got));
    zc_derp_status(derp, &status);
    CHECK(status.dropped_queue > 0);
    CHECK_INT(n + status.dropped_queue, sent);
    for (size_t i = 1; i < n; i++)
        CHECK(got[i - 1] < got[i]);
    CHECK(n > 0 && got[n - 1] == sent - 1);
    relay_end();
}

TEST(derp_rate_of_the_relay)
{
    struct zc_derp_status status;
    uint32_t got[64];
    relay_begin();
    relay_raw(RELAY_101, strlen(RELAY_101));
    relay_vector("server_key_frame");
    relay_info("{\"version\":2,\"TokenBucketBytesPerSecond\":10000,"
               "\"TokenBucketBytesBurst\":5000}");
    CHECK(relay_say(ZC_DERP_EVENT_UP));
    relay_take(100);
    relay_got_len = 0;
    for (uint32_t i = 0; i < 10; i++)
        CHECK_INT(send_number(i, 1000 - 37), i < 5);
    relay_wait(99);
    CHECK(!send_number(10, 1000 - 37));
    relay_wait(1);
    CHECK(send_number(11, 1000 - 37));
    relay_wait(3600000);
    for (uint32_t i = 20; i < 30; i++)
        CHECK_INT(send_number(i, 1000 - 37), i < 25);
    relay_take(5000);
    CHECK_INT(numbers(got, 64), 11);
    zc_derp_status(derp, &status);
    CHECK_INT(status.dropped_rate, 11);
    /* The vector's rate replaces it. */
    relay_vector("server_info_rate_frame");
    CHECK(relay_say_quiet());
    for (uint32_t i = 0; i < 30; i++)
        CHECK(send_number(i, 3000));
    relay_end();
}

TEST(derp_login_takes_10_seconds_at_most)
{
    struct zc_derp_event ev;
    relay_begin();
    CHECK_INT(zc_derp_deadline(derp).ns, derp_now.mono.ns + 10 * ZC_NS_PER_S);
    relay_raw(RELAY_101, strlen(RELAY_101));
    relay_vector("server_key_frame");
    CHECK(relay_say_quiet());
    relay_wait(9999);
    relay_tick();
    CHECK(!relay_event(&ev));
    relay_vector("keepalive_frame");
    CHECK(relay_say_quiet());
    relay_wait(1);
    relay_tick();
    CHECK(relay_event(&ev) && ev.kind == ZC_DERP_EVENT_CLOSED && ev.why == ZC_DERP_WHY_LOGIN);
    relay_end();
}

/* Ticks at each deadline until it closes; returns the seconds from now to the close. */
static int64_t silence(void)
{
    struct zc_derp_event ev;
    struct zc_mono start = derp_now.mono;
    for (int i = 0; i < 10; i++) {
        struct zc_mono due = zc_derp_deadline(derp);
        CHECK(due.ns > derp_now.mono.ns && due.ns != INT64_MAX);
        derp_now.mono.ns = due.ns - 1; /* early changes nothing */
        relay_tick();
        CHECK_INT(zc_derp_deadline(derp).ns, due.ns);
        derp_now.mono = due;
        relay_tick();
        relay_tick();
        relay_take(100);
        if (relay_event(&ev)) {
            CHECK(ev.kind == ZC_DERP_EVENT_CLOSED && ev.why == ZC_DERP_WHY_SILENT);
            return zc_mono_diff_ms(start, derp_now.mono) / 1000;
        }
    }
    return -1;
}

TEST(derp_silent_relay_is_noticed)
{
    relay_up();
    int64_t s = silence();
    CHECK(s >= 60 && s <= 90);
    CHECK_INT(relay_got_len, 13); /* one ping */
    CHECK_INT(relay_got[0], 0x12);
    relay_end();

    relay_up(); /* sooner while packets go out */
    CHECK(send_number(1, 100));
    relay_take(100);
    s = silence();
    CHECK(s >= 20 && s <= 40);
    relay_end();
}

/* Keep-alives every 65 s and answered pings keep it up for ever. */
TEST(derp_quiet_relay_is_kept)
{
    struct zc_derp_status status;
    relay_up();
    for (int i = 0; i < 200; i++) {
        CHECK(zc_derp_deadline(derp).ns >= derp_now.mono.ns);
        relay_wait(1000);
        if (i % 65 == 64)
            relay_vector("keepalive_frame");
        relay_tick();
        relay_take(100);
        if (relay_got_len > 0) { /* a ping: answered 30 ms later */
            CHECK_INT(relay_got_len, 13);
            relay_frame(0x13, relay_got + 5, 8);
            relay_wait(30);
            relay_got_len = 0;
        }
        CHECK(relay_say_quiet());
    }
    zc_derp_status(derp, &status);
    CHECK_INT(status.state, ZC_DERP_UP);
    CHECK_INT(status.rtt_us, 30000);
    relay_end();
}

TEST(derp_after_a_suspend)
{
    struct zc_derp_event ev;
    relay_up();
    relay_wait(120000);
    relay_tick();
    CHECK(relay_event(&ev) && ev.why == ZC_DERP_WHY_SILENT);
    relay_end();
}

TEST(derp_probe)
{
    struct zc_derp_event ev;
    relay_up();
    zc_derp_probe(derp, derp_now, &derp_rng, 3000);
    CHECK_INT(zc_derp_deadline(derp).ns, derp_now.mono.ns + 3 * ZC_NS_PER_S);
    relay_vector("keepalive_frame"); /* any sign of life will do */
    CHECK(relay_say_quiet());
    relay_wait(3000);
    relay_tick();
    CHECK(!relay_event(&ev));
    zc_derp_probe(derp, derp_now, &derp_rng, 3000);
    relay_wait(3000);
    relay_tick();
    CHECK(relay_event(&ev) && ev.why == ZC_DERP_WHY_SILENT);
    relay_end();
}
