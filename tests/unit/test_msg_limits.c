/* zmqc/msg.h: decoding at its limits, duplicates, and what wins over what. */
#include "test.h"
#include "zmqc/msg.h"

static struct zc_msg msg;

/* A frame under construction; decoding keeps it until the next one starts. */
static char *text;
static size_t len, cap;

static void begin(const char *s)
{
    len = 0;
    cap = 3 << 20;
    free(text);
    text = malloc(cap);
    len = strlen(s);
    memcpy(text, s, len);
}

static void add(const char *s)
{
    memcpy(text + len, s, strlen(s));
    len += strlen(s);
}

static void add_many(char c, size_t n)
{
    memset(text + len, c, n);
    len += n;
}

static int decode(const char **ret_reason)
{
    text = realloc(text, len); /* exact, for AddressSanitizer */
    return zc_msg_decode(&msg, (uint8_t *)text, len, ret_reason);
}

/* NULL sound, or why it is invalid, or the structural reason. */
static const char *verdict(void)
{
    const char *reason = NULL;
    return decode(&reason) == 0 ? msg.invalid : reason;
}

static bool same(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

TEST(msg_string_lengths)
{
    static const struct {
        const char *name;
        size_t most;
        const char *why;
    } rows[] = {{"id", 1024, "id is longer than 1,024 bytes"},
                {"name", 1024, "name is longer than 1,024 bytes"},
                {"from", 1024, "from is longer than 1,024 bytes"},
                {"topic", 1024, "topic is longer than 1,024 bytes"},
                {"to", 1024, "to is longer than 1,024 bytes"},
                {"op", 64, "op is longer than 64 bytes"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (size_t more = 0; more < 2; more++) {
            begin("{\"");
            add(rows[i].name);
            add("\":\"");
            add_many('x', rows[i].most + more);
            add("\"}");
            CHECK(same(verdict(), more == 0 ? NULL : rows[i].why));
            CHECK_INT(msg.id_bad, i == 0 && more == 1);
        }
        /* What counts is the decoded string: 1,024 bytes of two-byte escapes fit. */
        begin("{\"");
        add(rows[i].name);
        add("\":\"");
        for (size_t k = 0; k < rows[i].most / 2; k++)
            add("\\u00e9");
        add("\"}");
        CHECK(same(verdict(), NULL));
    }
}

TEST(msg_long_strings_without_a_limit)
{
    begin("{\"text\":\"");
    add_many('x', 2097152 - 11);
    add("\"}");
    CHECK(same(verdict(), NULL) && msg.text.len == 2097152 - 11);
    begin("{\"body\":\"");
    add_many('A', 1398104);
    add("\"}");
    CHECK(same(verdict(), NULL) && msg.body.len == 1048578);
}

TEST(msg_members)
{
    for (int extra = 0; extra < 2; extra++) {
        begin("{\"op\":\"ping\"");
        for (int i = 0; i < 255 + extra; i++) {
            char member[32];
            snprintf(member, sizeof(member), ",\"unknown-%03d\":%d", i, i);
            add(member);
        }
        add("}");
        CHECK(same(verdict(), extra == 0 ? NULL : "more than 256 members"));
    }
}

TEST(msg_duplicates)
{
    static const struct {
        const char *json;
        const char *want;
    } rows[] = {
        {"{\"op\":\"ping\",\"op\":\"put\"}", "a key stands twice"},
        {"{\"zz\":1,\"zz\":1}", "a key stands twice"},
        {"{\"zz\":1,\"op\":\"ping\",\"z\\u007a\":null}", "a key stands twice"},
        {"{\"a long unknown name\":1,\"a long unknown name\":2}", "a key stands twice"},
        {"{\"a long unknown name\":1,\"a long unknown namf\":2}", NULL},
        {"{\"\":1,\"\":2}", "a key stands twice"},
        {"{\"a\":1,\"a\\u0000\":2,\"a\\u0000\\u0000\":3}", NULL},
        {"{\"zz\":1,\"ZZ\":2}", NULL}, /* unknown names are told apart by case */
        {"{\"headers\":{\"a\":\"1\",\"a\":\"2\"}}", "a header stands twice"},
        {"{\"headers\":{\"a\":\"1\",\"b\":\"\",\"\\u0061\":\"1\"}}", "a header stands twice"},
        {"{\"headers\":{\"a\":\"1\",\"A\":\"2\",\"op\":\"3\",\"OP\":\"4\"}}", NULL},
        {"{\"zz\":{\"a\":1,\"a\":2}}", NULL}, /* inside what nobody looks at */
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        begin(rows[i].json);
        CHECK(same(verdict(), rows[i].want));
    }
}

TEST(msg_headers)
{
    static const char *bad[] = {"{\"headers\":{\"a\":1}}", "{\"headers\":{\"a\":null}}",
                                "{\"headers\":{\"a\":{}}}", "{\"headers\":\"a\"}",
                                "{\"headers\":[\"a\"]}"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        begin(bad[i]);
        CHECK(same(verdict(), "headers is not an object of strings"));
    }
    for (uint32_t n = 255; n <= 258; n++) {
        begin("{\"headers\":{");
        for (uint32_t i = 0; i < n; i++) {
            char header[32];
            snprintf(header, sizeof(header), "%s\"%u\":\"x\"", i > 0 ? "," : "", i);
            add(header);
        }
        add("}}");
        CHECK(same(verdict(), n <= 256 ? NULL : "headers has more than 256 entries"));
        CHECK_INT(msg.headers_count, n <= 256 ? n : 256);
        /* A wrong type past the cap still ends the session. */
        begin("{\"headers\":{");
        for (uint32_t i = 0; i < n; i++) {
            char header[32];
            snprintf(header, sizeof(header), "\"%u\":\"x\",", i);
            add(header);
        }
        add("\"last\":7}}");
        CHECK(same(verdict(), "headers is not an object of strings"));
    }
}

TEST(msg_arrays)
{
    static const char *names[] = {"deliveries", "failed"};
    for (int k = 0; k < 2; k++) {
        for (uint32_t n = 1023; n <= 1026; n++) {
            char why[64], wrong[64];
            snprintf(why, sizeof(why), "%s has more than 1,024 entries", names[k]);
            snprintf(wrong, sizeof(wrong), "%s is not an array of strings", names[k]);
            for (int bad = 0; bad < 2; bad++) {
                begin("{\"");
                add(names[k]);
                add("\":[\"first\"");
                for (uint32_t i = 1; i < n; i++)
                    add(",\"x\"");
                add(bad ? ",null]}" : "]}");
                CHECK(same(verdict(), bad ? wrong : n <= 1024 ? NULL : why));
            }
        }
    }
    begin("{\"deliveries\":[]}");
    CHECK(same(verdict(), NULL) && msg.has == ZC_MSG_HAS_DELIVERIES && msg.deliveries_count == 0);
    begin("{\"deliveries\":[\"a\\n\",\"\"]}");
    CHECK(same(verdict(), NULL) && zc_slice_is(msg.deliveries[0], "a\n") &&
          msg.deliveries[1].len == 0);
    begin("{\"deliveries\":[[\"a\"]]}");
    CHECK(same(verdict(), "deliveries is not an array of strings"));
}

TEST(msg_depth)
{
    for (size_t n = 1; n < 40; n++) { /* n brackets inside the object's own */
        begin("{\"x\":");
        add_many('[', n);
        add_many(']', n);
        add("}");
        CHECK(same(verdict(), n <= 31 ? NULL : "nested too deep"));
    }
    begin("{\"x\":");
    add_many('[', 2000000);
    CHECK(same(verdict(), "nested too deep"));
}

TEST(msg_structural_faults_win)
{
    begin("{\"text\":\"\xff\",\"v\":2}");
    CHECK(same(verdict(), "v is not 0 or 1"));
    begin("{\"id\":\"\xff\",\"text\":\"x\"");
    CHECK(same(verdict(), "ends too early"));
    begin("{\"max\":0,\"headers\":{\"a\":\"\",\"a\":\"\"}}");
    CHECK(same(verdict(), "a header stands twice"));
    begin("{\"delay\":-1} x");
    CHECK(same(verdict(), "bytes after the JSON object"));
    /* Of several unsound values the first is named, and a bad id is known all the same. */
    begin("{\"max\":0,\"delay\":-1,\"id\":\"\xff\"}");
    CHECK(same(verdict(), "max is not between 1 and 1,024") && msg.id_bad);
}

/* Frames made to be slow. Each is decoded in linear time; this ends at once or not at all. */
TEST(msg_hostile_frames)
{
    begin("{"); /* long unknown names that differ at the end only */
    for (int i = 0; i < 255; i++) {
        add(i > 0 ? ",\"" : "\"");
        add_many('k', 8000);
        char end[16];
        snprintf(end, sizeof(end), "%03d\":0", i);
        add(end);
    }
    add("}");
    CHECK(same(verdict(), NULL));
    begin("{\"headers\":{\"0\":\"\""); /* a hundred thousand headers */
    for (int i = 1; i < 100000; i++) {
        char header[24];
        snprintf(header, sizeof(header), ",\"%d\":\"\"", i);
        add(header);
    }
    add("}}");
    CHECK(same(verdict(), "headers has more than 256 entries"));
    begin("{\"text\":\""); /* nothing but escapes */
    for (int i = 0; i < 300000; i++)
        add("\\u0000");
    add("\"}");
    CHECK(same(verdict(), NULL) && msg.text.len == 300000);
    begin("{\"delay\":0."); /* a number of a million digits */
    add_many('0', 1000000);
    add("1}");
    CHECK(same(verdict(), NULL) && msg.delay_ms == 1);
    begin("");
    add_many(' ', 2000000);
    CHECK(same(verdict(), "not a JSON object"));
}
