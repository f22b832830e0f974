/* Last values and prefixes: replay order, caps, one walk a prefix. */
#include "test.h"
#include "zmqc/session.h"
#include "zmqc/topic.h"

static struct zc_topics topics;
static struct zc_heap timers;
static const uint8_t key[16] = {4};

static void set(const char *name, const char *value, uint64_t max)
{
    struct zc_block *frame = zc_block_new(strlen(value));
    memcpy(frame->data, value, strlen(value));
    struct zc_topic *topic;
    CHECK_INT(zc_topics_set(&topics, zc_slice_str(name), frame, max, &timers, &topic), 0);
    zc_block_unref(frame);
}

/* Values of a whole replay, joined by commas. */
static const char *replay(struct zc_sub *sub)
{
    static char text[4096];
    size_t len = 0;
    struct zc_topic *topic;
    while ((topic = zc_topics_replay(&topics, sub)) != NULL) {
        sub->replayed = topic->version;
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%.*s,", (int)topic->frame->len,
                                (const char *)topic->frame->data);
    }
    text[len] = '\0';
    return text;
}

TEST(replay_in_order_without_what_came_later)
{
    zc_topics_init(&topics, key);
    struct zc_session *s = zc_session_new("i", "n");
    set("a.1", "1", 100);
    set("b.1", "2", 100);
    set("a.2", "3", 100);
    set("a.1", "4", 100); /* newer than a.2 now */
    set("$x", "5", 100);
    struct zc_sub *a = zc_topics_sub(&topics, s, zc_slice_str("a."), NULL);
    struct zc_sub *all = zc_topics_sub(&topics, s, zc_slice_str(""), NULL);
    set("a.2", "6", 100); /* comes live, not by replay */
    CHECK(strcmp(replay(a), "4,") == 0);
    CHECK(strcmp(replay(all), "2,4,") == 0);
    CHECK(strcmp(replay(a), "") == 0);
    CHECK(zc_topics_sub(&topics, s, zc_slice_str("a."), NULL) == a);
    CHECK(strcmp(replay(a), "4,6,") == 0);
    zc_topics_unsub(&topics, a);
    zc_topics_unsub(&topics, all);
    zc_session_free(s);
    zc_topics_done(&topics, &timers);
}

TEST(cap_drops_the_oldest)
{
    zc_topics_init(&topics, key);
    struct zc_session *s = zc_session_new("i", "n");
    char name[16];
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof(name), "t%d", i);
        set(name, name, 64);
        CHECK(topics.by_name.len <= 64);
    }
    CHECK(zc_topics_find(&topics, zc_slice_str("t4935")) == NULL);
    CHECK(zc_topics_find(&topics, zc_slice_str("t4936")) != NULL);
    struct zc_sub *sub = zc_topics_sub(&topics, s, zc_slice_str("t"), NULL);
    CHECK(strncmp(replay(sub), "t4936,t4937,", 12) == 0);
    zc_topics_unsub(&topics, sub);
    zc_session_free(s);
    zc_topics_done(&topics, &timers);
}

TEST(a_value_that_goes_and_comes_again)
{
    zc_topics_init(&topics, key);
    for (int i = 0; i < 3; i++) {
        struct zc_topic *topic;
        CHECK(zc_topics_find(&topics, zc_slice_str("a")) == NULL);
        set("a", "1", 100);
        set("a", "2", 100);
        topic = zc_topics_find(&topics, zc_slice_str("a"));
        CHECK(topic != NULL);
        if (topic != NULL)
            zc_topics_remove(&topics, &timers, topic);
    }
    CHECK_INT(topics.bytes, 0);
    zc_topics_done(&topics, &timers);
}

TEST(bytes_are_bounded_and_counted)
{
    zc_topics_init(&topics, key);
    topics.bytes_max = 1000;
    char name[16], value[400];
    unsigned state = 7;
    for (int i = 0; i < 5000; i++) {
        state = state * 1103515245 + 12345;
        size_t len = 1 + (state >> 16) % (sizeof(value) - 1);
        snprintf(name, sizeof(name), "t%u", (state >> 8) % 40);
        memset(value, 'x', len);
        value[len] = '\0';
        set(name, value, 30);
        CHECK(topics.bytes <= 1000 && topics.by_name.len <= 30);
        struct zc_topic *topic = zc_topics_find(&topics, zc_slice_str(name));
        CHECK(topic != NULL && topic->frame->len == len); /* the newest always stays */
        uint64_t sum = 0;
        for (uint32_t k = 0; k < topics.order_len; k++)
            sum += topics.order[k] != NULL ? topics.order[k]->frame->len : 0;
        CHECK_INT(topics.bytes, sum);
    }
    zc_topics_done(&topics, &timers);
}

TEST(match_walks_each_prefix_once)
{
    zc_topics_init(&topics, key);
    struct zc_session *s = zc_session_new("i", "n");
    const char *prefixes[] = {"", "e", "ev.", "ev.a", "ev.ab", "x"};
    struct zc_sub *subs[6];
    for (int i = 0; i < 6; i++)
        subs[i] = zc_topics_sub(&topics, s, zc_slice_str(prefixes[i]), NULL);
    size_t len = 0, n = 0;
    struct zc_prefix *p;
    while ((p = zc_topics_match(&topics, zc_slice_str("ev.a"), &len)) != NULL)
        CHECK(strncmp((const char *)p->text, prefixes[n++], p->len) == 0);
    CHECK_INT(n, 4);
    len = 0;
    CHECK(zc_topics_match(&topics, zc_slice_str("$zmqcat.x"), &len) == NULL);
    for (int i = 0; i < 6; i++)
        zc_topics_unsub(&topics, subs[i]);
    CHECK_INT(topics.prefixes.len, 0);
    zc_session_free(s);
    zc_topics_done(&topics, &timers);
}
