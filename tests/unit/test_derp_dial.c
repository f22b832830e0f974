/* tunnel/derp_dial.h: order, pauses, families. */
#include "tunnel/derp_dial.h"

#include <arpa/inet.h>

#include "base/check.h"
#include "test.h"

static struct zc_derp_dial dial;
static struct zc_derp_dial_try try;
static struct zc_rng rng;
static struct zc_mono now;

static void begin(const struct zc_derpmap_node *nodes, uint32_t count)
{
    static const uint8_t seed[32] = "dial";
    zc_rng_init(&rng, seed);
    now = (struct zc_mono){5 * ZC_NS_PER_S};
    zc_derp_dial_init(&dial, nodes, count, now);
}

static int64_t pause_ms(void)
{
    struct zc_mono at = zc_derp_dial_deadline(&dial);
    CHECK(at.ns != INT64_MAX);
    int64_t ms = zc_mono_diff_ms(now, at);
    CHECK(at.ns == now.ns || !zc_derp_dial_next(&dial, (struct zc_mono){at.ns - 1}, &try));
    now = at;
    return ms;
}

static bool dialled(const char *name)
{
    return zc_derp_dial_next(&dial, now, &try) && strcmp(try.node->name, name) == 0 &&
           zc_derp_dial_deadline(&dial).ns == INT64_MAX && !zc_derp_dial_next(&dial, now, &try);
}

TEST(dial_nodes_in_turn_then_pause)
{
    static const struct zc_derpmap_node nodes[] = {
        {.name = "s", .host = "s", .stun_only = true},
        {.name = "a", .host = "a"},
        {.name = "n", .host = "n", .ipv4 = "none", .ipv6 = "none"},
        {.name = "b", .host = "b"},
        {.name = "x"},
    };
    begin(nodes, ZC_ARRAY_LEN(nodes));
    for (int round = 1; round < 60; round++) {
        int64_t unit = round * round * 10 < 5000 ? round * round * 10 : 5000;
        CHECK(dialled("a"));
        zc_derp_dial_failed(&dial, now, &rng);
        CHECK_INT(pause_ms(), 0);
        CHECK(dialled("b"));
        zc_derp_dial_failed(&dial, now, &rng);
        int64_t ms = pause_ms();
        CHECK(ms >= unit / 2 && ms <= unit * 3 / 2);
    }
}

/* A relay that takes logins and hangs up is met with growing pauses; one that stood is not. */
TEST(dial_after_a_loss)
{
    static const struct zc_derpmap_node nodes[] = {{.name = "a", .host = "a"}};
    int64_t ms = 0;
    begin(nodes, 1);
    for (int i = 0; i < 40; i++) {
        CHECK(dialled("a"));
        zc_derp_dial_up(&dial, now, false);
        CHECK_INT(zc_derp_dial_deadline(&dial).ns, INT64_MAX);
        now = zc_mono_add_ms(now, 9000);
        zc_derp_dial_failed(&dial, now, &rng);
        zc_derp_dial_failed(&dial, now, &rng); /* once is enough */
        ms = pause_ms();
    }
    CHECK(ms >= 2500 && ms <= 7500);
    CHECK(dialled("a"));
    zc_derp_dial_up(&dial, now, false);
    now = zc_mono_add_ms(now, 10000);
    zc_derp_dial_failed(&dial, now, &rng);
    CHECK(pause_ms() <= 15);
}

TEST(dial_jitter_differs)
{
    static const struct zc_derpmap_node nodes[] = {{.name = "a", .host = "a"}};
    int64_t low = INT64_MAX, high = 0;
    begin(nodes, 1);
    for (int i = 0; i < 200; i++) {
        CHECK(dialled("a"));
        zc_derp_dial_failed(&dial, now, &rng);
        int64_t ms = pause_ms();
        if (i >= 30) {
            low = ms < low ? ms : low;
            high = ms > high ? ms : high;
        }
    }
    CHECK(low >= 2500 && low < 3000);
    CHECK(high <= 7500 && high > 7000);
}

TEST(dial_relay_restarts)
{
    static const struct zc_derpmap_node nodes[] = {{.name = "a", .host = "a"}};
    begin(nodes, 1);
    zc_derp_dial_restarting(&dial, now, 5000); /* not connected: means nothing */
    CHECK_INT(pause_ms(), 0);
    CHECK(dialled("a"));
    zc_derp_dial_up(&dial, now, false);
    zc_derp_dial_restarting(&dial, now, 3000);
    now = zc_mono_add_ms(now, 1000);
    zc_derp_dial_failed(&dial, now, &rng);
    zc_derp_dial_hurry(&dial, now);
    CHECK_INT(pause_ms(), 2000);
    CHECK(dialled("a"));
    zc_derp_dial_up(&dial, now, false);
    zc_derp_dial_restarting(&dial, now, UINT32_MAX);
    zc_derp_dial_failed(&dial, now, &rng);
    CHECK_INT(pause_ms(), 60000);
    CHECK(dialled("a"));
    zc_derp_dial_failed(&dial, now, &rng);
    CHECK(pause_ms() < 100);
}

TEST(dial_hurry)
{
    static const struct zc_derpmap_node nodes[] = {{.name = "a", .host = "a"}};
    begin(nodes, 1);
    for (int i = 0; i < 50; i++) {
        CHECK(dialled("a"));
        zc_derp_dial_failed(&dial, now, &rng);
        now = zc_derp_dial_deadline(&dial);
    }
    CHECK(dialled("a"));
    zc_derp_dial_failed(&dial, now, &rng);
    zc_derp_dial_hurry(&dial, now);
    CHECK_INT(pause_ms(), 0);
    CHECK(dialled("a"));
    zc_derp_dial_failed(&dial, now, &rng);
    CHECK(pause_ms() >= 500 && pause_ms() <= 1500);
    begin(nodes, 1);
    CHECK(dialled("a"));
    zc_derp_dial_failed(&dial, now, &rng);
    zc_derp_dial_hurry(&dial, now); /* makes no pause longer */
    CHECK(dialled("a"));
    zc_derp_dial_failed(&dial, now, &rng);
    CHECK(pause_ms() <= 60);
}

/* A network that changes each second, and a relay that refuses: about one dial a second. */
TEST(dial_hurry_each_second)
{
    static const struct zc_derpmap_node nodes[] = {{.name = "a", .host = "a"}};
    int dials = 0;
    begin(nodes, 1);
    for (int ms = 0; ms < 100000; ms++) {
        if (ms % 1000 == 0)
            zc_derp_dial_hurry(&dial, now);
        if (zc_derp_dial_next(&dial, now, &try)) {
            dials++;
            zc_derp_dial_failed(&dial, now, &rng);
        }
        now = zc_mono_add_ms(now, 1);
    }
    CHECK(dials >= 100 && dials <= 170);
}

TEST(dial_soon)
{
    static const struct zc_derpmap_node nodes[] = {{.name = "a", .host = "a"}};
    int64_t least = INT64_MAX, most = 0;
    begin(nodes, 1);
    for (int i = 0; i < 100; i++) {
        CHECK(dialled("a"));
        zc_derp_dial_up(&dial, now, false);
        zc_derp_dial_failed(&dial, now, &rng);
        zc_derp_dial_soon(&dial, now, &rng, 1000);
        int64_t ms = pause_ms();
        least = ms < least ? ms : least;
        most = ms > most ? ms : most;
    }
    CHECK(least < 100 && most > 900 && most < 1000);
    /* the relay's own time is kept */
    CHECK(dialled("a"));
    zc_derp_dial_restarting(&dial, now, 5000);
    zc_derp_dial_failed(&dial, now, &rng);
    zc_derp_dial_soon(&dial, now, &rng, 1000);
    CHECK_INT(pause_ms(), 5000);
}

TEST(dial_no_relay_at_all)
{
    static const struct zc_derpmap_node nodes[] = {{.name = "s", .host = "s", .stun_only = true}};
    for (uint32_t count = 0; count < 2; count++) {
        begin(nodes, count);
        CHECK_INT(zc_derp_dial_deadline(&dial).ns, INT64_MAX);
        CHECK(!zc_derp_dial_next(&dial, now, &try));
        zc_derp_dial_hurry(&dial, now);
        CHECK(!zc_derp_dial_next(&dial, now, &try));
    }
}

TEST(dial_families)
{
    static const struct {
        const char *host, *ipv4, *ipv6;
        bool use4, use6;
        const char *address4, *address6;
    } cases[] = {
        {"h", "", "", true, true, NULL, NULL},
        {"h", "192.0.2.1", "", true, true, "192.0.2.1", NULL},
        {"h", "none", "2001:db8::1", false, true, NULL, "2001:db8::1"},
        {"h", "", "none", true, false, NULL, NULL},
        {"h", "2001:db8::1", "192.0.2.1", false, false, NULL, NULL},
        {"127.0.0.1", "", "", true, false, "127.0.0.1", NULL},
        {"::1", "", "", false, true, NULL, "::1"},
        {"127.0.0.1", "127.0.0.1", "none", true, false, "127.0.0.1", NULL},
        {"h", "256.0.0.1", "none", false, false, NULL, NULL},
        {"h", "1.2.3", "1:2:3:4:5:6:7:8", false, true, NULL, "1:2:3:4:5:6:7:8"},
    };
    for (size_t i = 0; i < ZC_ARRAY_LEN(cases); i++) {
        struct zc_derpmap_node node = {.name = "a"};
        snprintf(node.host, sizeof(node.host), "%s", cases[i].host);
        snprintf(node.ipv4, sizeof(node.ipv4), "%s", cases[i].ipv4);
        snprintf(node.ipv6, sizeof(node.ipv6), "%s", cases[i].ipv6);
        begin(&node, 1);
        bool any = cases[i].use4 || cases[i].use6;
        CHECK_INT(zc_derp_dial_next(&dial, now, &try), any);
        if (!any)
            continue;
        CHECK_INT(try.v4.use, cases[i].use4);
        CHECK_INT(try.v6.use, cases[i].use6);
        CHECK((try.v4.address == NULL) == (cases[i].address4 == NULL));
        CHECK((try.v6.address == NULL) == (cases[i].address6 == NULL));
        if (try.v4.address != NULL && cases[i].address4 != NULL)
            CHECK(strcmp(try.v4.address, cases[i].address4) == 0);
        if (try.v6.address != NULL && cases[i].address6 != NULL)
            CHECK(strcmp(try.v6.address, cases[i].address6) == 0);
        CHECK_INT(try.v4.delay_ms, 0);
        zc_derp_dial_up(&dial, now, true);
        zc_derp_dial_failed(&dial, now, &rng);
        now = zc_derp_dial_deadline(&dial);
        CHECK(zc_derp_dial_next(&dial, now, &try));
        CHECK_INT(try.v4.delay_ms, cases[i].use6 ? ZC_DERP_DIAL_STAGGER_MS : 0);
    }
}

/* IP literals: those that the system takes, and no others. */
TEST(dial_literals)
{
    static const struct {
        const char *text;
        bool v6;
    } cases[] = {
        {"::", true},
        {"::1", true},
        {"1::", true},
        {"1:2:3:4:5:6:7::", true},
        {"::2:3:4:5:6:7:8", true},
        {"::ffff:1.2.3.4", true},
        {"1:2:3:4:5:6:1.2.3.4", true},
        {"fe80::1%eth0", false},
        {":", false},
        {":1", false},
        {"1:", false},
        {"1::2::3", false},
        {"1:::2", false},
        {"12345::", false},
        {"g::", false},
        {"1:2:3:4:5:6:7", false},
        {"1:2:3:4:5:6:7:8:9", false},
        {"1:2:3:4:5:6:7:8::", false},
        {"::1.2.3", false},
        {"::1.2.3.4.5", false},
        {"1:2:3:4:5:6:7:1.2.3.4", false},
        {"1.2.3.4", false},
        {"::1.2.3.4:5", false},
        {"[::1]", false},
    };
    for (size_t i = 0; i < ZC_ARRAY_LEN(cases); i++) {
        struct zc_derpmap_node node = {.name = "a", .host = "h", .ipv4 = "none"};
        snprintf(node.ipv6, sizeof(node.ipv6), "%s", cases[i].text);
        begin(&node, 1);
        bool got = zc_derp_dial_next(&dial, now, &try);
        CHECK_INT(got, cases[i].v6);
        if (got != cases[i].v6)
            printf("  %s\n", cases[i].text);
    }
}

/* Against the system's own parser, with texts that are nearly right. */
TEST(dial_literals_random)
{
    static const char *const bases[] = {"192.0.2.10", "2001:db8::1",    "1:2:3:4:5:6:7:8",
                                        "::",         "::ffff:1.2.3.4", "1:2:3:4:5:6:10.20.30.40",
                                        "255.0.0.255"};
    static const char alphabet[] = "0125af:.:.";
    int good = 0;
    begin(NULL, 0);
    for (int round = 0; round < 200000; round++) {
        struct zc_derpmap_node node = {.name = "a", .host = "h", .ipv4 = "none", .ipv6 = "none"};
        struct in6_addr addr;
        char text[64];
        uint64_t r = zc_rng_u64(&rng);
        snprintf(text, sizeof(text) - 2, "%s", bases[r % ZC_ARRAY_LEN(bases)]);
        for (uint64_t edits = r >> 8 & 3; edits > 0; edits--) {
            r = zc_rng_u64(&rng);
            size_t len = strlen(text), at = r % len;
            if (r >> 10 & 1)
                memmove(text + at, text + at + 1, len - at);
            else if (len < 50)
                memmove(text + at + 1, text + at, len - at + 1);
            if (text[0] == '\0')
                break;
            text[at < strlen(text) ? at : 0] = alphabet[(r >> 16) % (sizeof(alphabet) - 1)];
        }
        bool v6 = strchr(text, ':') != NULL;
        snprintf(v6 ? node.ipv6 : node.ipv4, 64, "%s", text);
        zc_derp_dial_init(&dial, &node, 1, now);
        bool want = text[0] == '\0' || inet_pton(v6 ? AF_INET6 : AF_INET, text, &addr) == 1;
        bool got = zc_derp_dial_next(&dial, now, &try);
        CHECK_INT(got, want);
        if (got != want)
            printf("  %s\n", text);
        good += want;
    }
    CHECK(good > 20000 && good < 180000);
}
