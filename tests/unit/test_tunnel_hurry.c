/* tunnel/tunnel.h: zc_tunnel_relay_hurry, whatever the relay's stream is doing. */
#define _GNU_SOURCE
#include "ends.h"

/* Until the tunnel gives the dial or stream up by itself; the bytes go nowhere. -1: not in time. */
static int64_t given_up_after(struct zc_tunnel *t, int64_t limit_ms, int64_t hurry_every_ms)
{
    static uint8_t out[65536];
    struct zc_tunnel_event ev;
    for (int64_t ms = 0; ms < limit_ms; ms++) {
        if (hurry_every_ms > 0 && ms % hurry_every_ms == 0)
            zc_tunnel_relay_hurry(t, now);
        if (zc_tunnel_deadline(t).ns <= now.mono.ns)
            zc_tunnel_tick(t, now);
        while (zc_tunnel_event(t, now, &ev))
            continue;
        if (zc_tunnel_relay_hangup(t))
            return ms;
        (void)zc_tunnel_relay_output(t, now, out, sizeof(out));
        now.mono.ns += ZC_NS_PER_MS;
    }
    return -1;
}

static struct end *dialling(void)
{
    struct zc_derp_dial_try dial;
    net_start();
    struct end *s = server(1);
    CHECK(zc_tunnel_relay_dial(s->t, now, &dial));
    return s;
}

TEST(hurry_while_it_dials)
{
    struct end *s = dialling();
    CHECK_INT(given_up_after(s->t, 20000, 0), 10000);
    net_end();
    s = dialling();
    CHECK_INT(given_up_after(s->t, 20000, 20001), 3000);
    net_end();
    s = dialling(); /* changes without end do not make it longer */
    CHECK_INT(given_up_after(s->t, 20000, 1000), 3000);
    net_end();
    s = dialling(); /* late ones neither */
    CHECK_INT(given_up_after(s->t, 9000, 0), -1);
    CHECK_INT(given_up_after(s->t, 20000, 1000), 1000);
    net_end();
}

TEST(hurry_while_it_pauses)
{
    struct zc_derp_dial_try dial;
    struct end *s = dialling();
    for (int i = 0; i < 30; i++) {
        zc_tunnel_relay_lost(s->t, now, "Network is unreachable");
        now.mono = zc_mono_add_ms(now.mono, 8000);
        CHECK(zc_tunnel_relay_dial(s->t, now, &dial));
    }
    zc_tunnel_relay_lost(s->t, now, "Network is unreachable");
    CHECK(!zc_tunnel_relay_dial(s->t, now, &dial));
    zc_tunnel_relay_hurry(s->t, now);
    CHECK(zc_tunnel_relay_dial(s->t, now, &dial));
    net_end();
}

TEST(hurry_while_the_stream_stands)
{
    net_start();
    struct end *s = server(1);
    CHECK(RUN_UNTIL(state(s) == ZC_TUNNEL_ONLINE, 1000) >= 0);
    for (int i = 0; i < 100; i++) { /* a relay that answers stays */
        zc_tunnel_relay_hurry(s->t, now);
        run(i);
    }
    run(5000);
    CHECK_INT(s->ups, 1);
    CHECK_INT(s->downs, 0);
    CHECK_INT(given_up_after(s->t, 20000, 1000), 3000);
    end_hangup(s);
    CHECK(RUN_UNTIL(s->ups == 2, 1000) >= 0);
    net_end();
}
