/* host/netwatch.h: which messages count, how often it tells, and life without a socket. */
#include "host/netwatch.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/if.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#endif

#include "base/check.h"
#include "base/rng.h"
#include "host/logsink.h"
#include "test.h"

#ifdef __linux__

static uint8_t buf[4096];
static size_t len;

/* One more message, with so many bytes of attributes. */
static void add(uint16_t type, const void *body, size_t body_len, size_t more)
{
    struct nlmsghdr head = {.nlmsg_type = type};
    head.nlmsg_len = (uint32_t)(NLMSG_HDRLEN + body_len + more);
    memset(buf + len, 0xff, NLMSG_ALIGN(head.nlmsg_len));
    memcpy(buf + len, &head, sizeof(head));
    if (body_len > 0)
        memcpy(buf + len + NLMSG_HDRLEN, body, body_len);
    len += NLMSG_ALIGN(head.nlmsg_len);
}

static void add_link(uint16_t type, unsigned flags)
{
    struct ifinfomsg m = {.ifi_flags = flags};
    add(type, &m, sizeof(m), 5);
}

static void add_addr(uint16_t type, uint8_t scope)
{
    struct ifaddrmsg m = {.ifa_family = 2, .ifa_scope = scope};
    add(type, &m, sizeof(m), 8);
}

static void add_route(uint16_t type, uint8_t table, unsigned flags)
{
    struct rtmsg m = {.rtm_family = 2, .rtm_table = table, .rtm_flags = flags};
    add(type, &m, sizeof(m), 16);
}

static bool counts(void)
{
    bool yes = zc_netwatch_counts(buf, len);
    len = 0;
    return yes;
}

TEST(what_counts)
{
    add_link(RTM_NEWLINK, IFF_UP);
    CHECK(counts());
    add_link(RTM_DELLINK, 0);
    CHECK(counts());
    add_addr(RTM_NEWADDR, RT_SCOPE_UNIVERSE);
    CHECK(counts());
    add_addr(RTM_DELADDR, RT_SCOPE_SITE);
    CHECK(counts());
    add_route(RTM_NEWROUTE, RT_TABLE_MAIN, 0);
    CHECK(counts());
    add_route(RTM_DELROUTE, RT_TABLE_UNSPEC, 0);
    CHECK(counts());
}

static void add_noise(void)
{
    add_link(RTM_NEWLINK, IFF_UP | IFF_LOOPBACK);
    add_addr(RTM_NEWADDR, RT_SCOPE_LINK);
    add_addr(RTM_DELADDR, RT_SCOPE_HOST);
    add_route(RTM_NEWROUTE, RT_TABLE_LOCAL, 0);
    add_route(RTM_DELROUTE, RT_TABLE_MAIN, RTM_F_CLONED);
    add(RTM_NEWNEIGH, NULL, 0, 40);
    add(NLMSG_NOOP, NULL, 0, 0);
    add(NLMSG_ERROR, NULL, 0, 20);
    add(NLMSG_DONE, NULL, 0, 4);
}

TEST(what_does_not_count)
{
    add_noise();
    CHECK(!counts());
    CHECK(!counts()); /* nothing at all */
    add_noise();
    add_route(RTM_NEWROUTE, RT_TABLE_MAIN, 0); /* the last of several */
    CHECK(counts());
}

/* A message that is longer than what was read of it is judged by its beginning. */
TEST(cut_short)
{
    for (size_t n = 0; n < NLMSG_HDRLEN + sizeof(struct ifinfomsg) + 5; n++) {
        add_link(RTM_NEWLINK, IFF_UP);
        len = n;
        CHECK_INT(counts(), n >= NLMSG_HDRLEN + sizeof(struct ifinfomsg));
    }
    add(RTM_NEWLINK, NULL, 0, 0);
    add(RTM_DELADDR, "x", 1, 0);
    add(RTM_NEWROUTE, "xy", 2, 0);
    CHECK(!counts());
    struct nlmsghdr odd = {.nlmsg_type = RTM_NEWLINK};
    for (uint32_t n = 0; n < NLMSG_HDRLEN; n++) { /* would never end */
        odd.nlmsg_len = n;
        memcpy(buf, &odd, sizeof(odd));
        add_link(RTM_NEWLINK, IFF_UP);
        memcpy(buf, &odd, sizeof(odd));
        CHECK(!counts());
    }
}

#endif

/* Random bytes, and messages with a few bytes changed, each in a block of its own for sanitizers.
 */
TEST(garbage)
{
    struct zc_rng rng;
    uint8_t seed[32] = {7};
    int yes = 0;
    zc_rng_init(&rng, seed);
    for (int i = 0; i < 200000; i++) {
        size_t n = (size_t)(zc_rng_u64(&rng) % 300);
#ifdef __linux__
        if (i % 2 == 0) {
            add_noise();
            n = len;
            len = 0;
        }
#endif
        uint8_t *data = malloc(n > 0 ? n : 1);
        zc_rng_bytes(&rng, data, n);
#ifdef __linux__
        if (i % 2 == 0) {
            uint8_t spoilt = data[0];
            memcpy(data, buf, n);
            for (int k = 0; k < 1 + spoilt % 4; k++)
                data[zc_rng_u64(&rng) % n] = (uint8_t)zc_rng_u64(&rng);
            n -= zc_rng_u64(&rng) % 8;
        }
#endif
        yes += zc_netwatch_counts(data, n);
        free(data);
    }
    CHECK(yes > 0 && yes < 100000);
}

/* Messages at any times: what was told is at least a second apart, and late by so much at most. */
TEST(pace)
{
    struct zc_rng rng;
    uint8_t seed[32] = {8};
    zc_rng_init(&rng, seed);
    CHECK_INT(zc_netwatch_wait_ms(5, 0), ZC_NETWATCH_SETTLE_MS);
    CHECK_INT(zc_netwatch_wait_ms(100000, 99999), 999);
    CHECK_INT(zc_netwatch_wait_ms(100000, 99050), ZC_NETWATCH_SETTLE_MS);
    uint64_t now = 1, told = 0;
    for (int i = 0; i < 10000; i++) {
        now += zc_rng_u64(&rng) % 1500;
        uint64_t wait = zc_netwatch_wait_ms(now, told);
        CHECK(wait >= ZC_NETWATCH_SETTLE_MS && wait <= ZC_NETWATCH_EVERY_MS);
        CHECK(told == 0 || now + wait - told >= ZC_NETWATCH_EVERY_MS);
        told = now += wait;
    }
}

static struct zc_mono at_ms(int64_t ms)
{
    return (struct zc_mono){ms * ZC_NS_PER_MS + 999999};
}

TEST(sleep_is_seen)
{
    int64_t ahead = INT64_MIN;
    CHECK(!zc_netwatch_slept(&ahead, at_ms(90000000), 1000)); /* slept before the start */
    CHECK(!zc_netwatch_slept(&ahead, at_ms(90010000), 11000));
    CHECK(!zc_netwatch_slept(&ahead, at_ms(90012500), 12000)); /* a turn that took long */
    CHECK(!zc_netwatch_slept(&ahead, at_ms(90012501), 13501));
    CHECK(zc_netwatch_slept(&ahead, at_ms(90012501 + 60000), 13501));
    CHECK(!zc_netwatch_slept(&ahead, at_ms(90012501 + 70000), 23501)); /* once */
    ahead = INT64_MIN;
    CHECK(!zc_netwatch_slept(&ahead, at_ms(0), 1000)); /* behind is fine too */
    CHECK(zc_netwatch_slept(&ahead, at_ms(6000), 2000));
}

static int told;
static uv_loop_t loop;
static struct zc_netwatch *watch;

static void on_told(void *arg)
{
    CHECK(arg == &loop);
    told++;
}

static void start_watch(struct zc_logsink *log)
{
    told = 0;
    CHECK_INT(uv_loop_init(&loop), 0);
    CHECK_INT(zc_netwatch_new(&loop, log, on_told, &loop, &watch), 0);
}

static void end_watch(void)
{
    zc_netwatch_close(watch);
    zc_netwatch_close(watch);
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK_INT(uv_loop_close(&loop), 0);
    zc_netwatch_free(watch);
}

/* One line for who looks for it; a sleep is seen all the same. */
TEST(no_socket_to_be_had)
{
    struct zc_logsink log;
    struct rlimit before, none;
    char line[200];
    int out[2];
    CHECK_INT(pipe(out), 0);
    zc_logsink_init(&log, out[1], ZC_LOGSINK_DEBUG, false);
    CHECK_INT(uv_loop_init(&loop), 0);
    getrlimit(RLIMIT_NOFILE, &before);
    none = before;
    int next = open("/dev/null", O_RDONLY);
    none.rlim_cur = (rlim_t)next;
    close(next);
    setrlimit(RLIMIT_NOFILE, &none);
    CHECK_INT(zc_netwatch_new(&loop, &log, on_told, &loop, &watch), 0);
    setrlimit(RLIMIT_NOFILE, &before);
    ssize_t n = read(out[0], line, sizeof(line) - 1);
    line[n > 0 ? n : 0] = '\0';
    CHECK(strcmp(line, "zmqcat: changes of the network are not watched: Too many open files\n") ==
          0);
    told = 0;
    zc_netwatch_turn(watch, at_ms(0));
    zc_netwatch_turn(watch, at_ms(60000));
    zc_netwatch_turn(watch, at_ms(120000));
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK_INT(told, 1);
    end_watch();
    close(out[0]);
    close(out[1]);
}

TEST(nothing_happens)
{
    struct zc_logsink log;
    zc_logsink_init(&log, 2, ZC_LOGSINK_ERR, false);
    start_watch(&log);
    zc_netwatch_turn(watch, at_ms(0));
    uv_run(&loop, UV_RUN_NOWAIT);
    end_watch();
    zc_netwatch_close(NULL);
    zc_netwatch_free(NULL);
}
