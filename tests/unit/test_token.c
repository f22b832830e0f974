/* tunnel/token.h: every vector both ways, what is refused and how (field case R12), files. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memmem */
#endif
#include "tunnel/token.h"

#include "base/check.h"
#include "crypto/secret.h"
#include "test.h"
#include "vector.h"

static struct zc_token token;
static char why[ZC_TOKEN_WHY_MAX];

/* One line of printable text, and nothing of the token itself. */
static bool why_good(struct zc_slice text)
{
    size_t len = strlen(why);
    for (size_t i = 0; i < len; i++) {
        if (why[i] < ' ' || why[i] > '~')
            return false;
    }
    return len > 4 && len < ZC_TOKEN_WHY_MAX - 1 &&
           (text.len < 20 || memmem(why, len, text.data + 2, 16) == NULL);
}

static bool refused(struct zc_slice text)
{
    struct zc_token before;
    memset(&token, 0x5a, sizeof(token));
    memcpy(&before, &token, sizeof(token));
    memset(why, 0, sizeof(why));
    return zc_token_decode(text, &token, why) == ZC_EINVAL && why_good(text) &&
           memcmp(&before, &token, sizeof(token)) == 0;
}

static bool key_is(struct zc_slice text, enum zc_secret_kind kind, const uint8_t bytes[32])
{
    uint8_t want[32];
    return zc_secret_parse(kind, text, want) == 0 && memcmp(want, bytes, 32) == 0;
}

static void optional_text(const struct vec *v, const char *name, const char *got)
{
    for (size_t i = 0; i < v->len; i++) {
        if (zc_slice_is(v->names[i], name)) {
            CHECK(zc_slice_is(v->values[i].text, got));
            return;
        }
    }
    CHECK(got[0] == '\0');
}

static int64_t optional_int(const struct vec *v, const char *name)
{
    int64_t n = 0;
    for (size_t i = 0; i < v->len; i++) {
        if (zc_slice_is(v->names[i], name))
            vec_need(zc_json_int(v->values[i].text, &n), name);
    }
    return n;
}

static void check_node(struct zc_json_value value, const struct zc_derpmap_node *n)
{
    struct vec v = vec_object(value);
    bool insecure = false;
    for (size_t i = 0; i < v.len; i++)
        insecure = insecure || zc_slice_is(v.names[i], "InsecureForTests");
    optional_text(&v, "Name", n->name);
    optional_text(&v, "HostName", n->host);
    optional_text(&v, "CertName", n->cert);
    optional_text(&v, "IPv4", n->ipv4);
    optional_text(&v, "IPv6", n->ipv6);
    CHECK_INT(n->stun_port, optional_int(&v, "STUNPort"));
    CHECK_INT(n->derp_port, optional_int(&v, "DERPPort"));
    CHECK_INT(n->insecure, insecure);
    CHECK(!n->stun_only);
}

static void check_regions(struct zc_json_value value)
{
    uint32_t regions = 0, nodes = 0;
    if (value.type == ZC_JSON_NULL) {
        CHECK_INT(token.regions_count, 0);
        return;
    }
    struct vec_each it = vec_each(value);
    while (vec_next(&it, &value)) {
        struct zc_derpmap_region *region = &token.regions[regions++];
        struct vec v = vec_object(value);
        CHECK_INT(region->id, optional_int(&v, "RegionID"));
        optional_text(&v, "RegionCode", region->code);
        optional_text(&v, "RegionName", region->name);
        CHECK_INT(region->nodes_first, nodes);
        struct zc_json_value list = vec_get(&v, "Nodes");
        if (list.type != ZC_JSON_ARRAY) {
            CHECK_INT(region->nodes_count, 0);
            continue;
        }
        uint32_t before = nodes;
        struct vec_each inner = vec_each(list);
        while (vec_next(&inner, &value))
            check_node(value, &token.nodes[nodes++]);
        CHECK_INT(region->nodes_count, nodes - before);
    }
    CHECK_INT(token.regions_count, regions);
    CHECK_INT(token.nodes_count, nodes);
}

static int check_valid(const char *list)
{
    struct vec groups = vec_object(vec_section("addresses"));
    struct vec_each it = vec_each(vec_get(&groups, list));
    struct zc_json_value value;
    int seen = 0;
    while (vec_next(&it, &value)) {
        char text[ZC_TOKEN_TEXT_MAX + 1];
        struct vec v = vec_object(value);
        struct vec parsed = vec_object(vec_get(&v, "parsed"));
        CHECK_INT(zc_token_decode(vec_text(&v, "address"), &token, why), 0);
        CHECK(key_is(vec_text(&parsed, "server_public"), ZC_SECRET_NODE_KEY, token.node_key.b));
        CHECK(key_is(vec_text(&parsed, "server_disco_public"), ZC_SECRET_DISCO_KEY,
                     token.disco_key.b));
        CHECK_INT(token.has_disco_key, !vec_get(&parsed, "server_disco_public_is_zero").boolean);
        CHECK_INT(token.region_id, optional_int(&parsed, "region_id"));
        if (strcmp(list, "valid") != 0) {
            CHECK(key_is(vec_text(&parsed, "psk"), ZC_SECRET_PRESHARED, token.psk.b));
            CHECK_INT(token.has_psk, !vec_get(&parsed, "psk_is_zero").boolean);
        } else {
            CHECK(!token.has_psk);
        }
        check_regions(vec_get(&parsed, "regions"));
        CHECK_INT(zc_token_encode(&token, text), 0);
        CHECK(zc_slice_is(vec_text(&v, "reencoded"), text));
        seen++;
    }
    return seen;
}

TEST(token_valid_vectors)
{
    CHECK_INT(check_valid("valid"), 15);
}

TEST(token_valid_vectors_with_psk)
{
    CHECK_INT(check_valid("valid_with_psk_v06plus"), 5);
}

static int check_refused(const char *list)
{
    struct vec groups = vec_object(vec_section("addresses"));
    struct vec_each it = vec_each(vec_get(&groups, list));
    struct zc_json_value value;
    int seen = 0;
    while (vec_next(&it, &value)) {
        struct vec v = vec_object(value);
        bool good = refused(vec_text(&v, "address"));
        CHECK(good);
        if (!good)
            printf("  %.*s: %s\n", (int)vec_text(&v, "name").len, vec_text(&v, "name").data, why);
        seen++;
    }
    return seen;
}

TEST(token_must_reject_vectors)
{
    CHECK_INT(check_refused("must_reject"), 29);
}

TEST(token_lenient_vectors_are_refused)
{
    CHECK_INT(check_refused("lenient_in_go_reject_when_strict"), 11);
}

TEST(token_unusual_vectors)
{
    struct vec groups = vec_object(vec_section("addresses"));
    struct vec_each it = vec_each(vec_get(&groups, "must_accept_unusual"));
    struct zc_json_value value;
    int seen = 0;
    while (vec_next(&it, &value)) {
        char text[ZC_TOKEN_TEXT_MAX + 1];
        struct vec v = vec_object(value);
        struct vec go = vec_object(vec_get(&v, "go_v070"));
        CHECK_INT(zc_token_decode(vec_text(&v, "address"), &token, why), 0);
        CHECK(key_is(vec_text(&go, "server_public"), ZC_SECRET_NODE_KEY, token.node_key.b));
        CHECK(!token.has_psk);
        CHECK_INT(zc_token_encode(&token, text), 0);
        CHECK(zc_slice_is(vec_text(&go, "reencoded"), text));
        seen++;
    }
    CHECK_INT(seen, 4);
}

#define GOOD                                                                                       \
    "tco2FwWCAHo3y8FCCTyLdV3BsQ6Gy0JjdK0WqoU-"                                                     \
    "0L38CyuG0cfGFrWCALYlIJBnz0H9kP7fwW39F8WwLL0CqlqFl7Xn-"                                        \
    "uqQNQY2FpAQ"

TEST(token_says_what_is_wrong)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"", "is empty"},
        {"tc", "was cut"},
        {"tco2FwWCAHo3y8FCCTyLdV3BsQ", "was cut"},
        {"TCo2FwWCAHo3y8", "\"TC\""},
        {"nodekey:00", "node key"},
        {"privkey:00", "private key"},
        {"hello", "does not begin"},
        {" " GOOD, "white space"},
        {GOOD "=", "padding"},
        {GOOD "\n", "white space"},
        {"tco2F.example.com", "dot"},
        {"tcBQ", "another kind or version"},
        {"tcoWFwQwECAw", "\"p\""},
        {"tcoA", "lacks the hub's key"},
        {"{\"Private\":1}", "JSON"},
    };
    for (size_t i = 0; i < ZC_ARRAY_LEN(cases); i++) {
        CHECK(refused(zc_slice_str(cases[i].text)));
        bool said = strstr(why, cases[i].words) != NULL;
        CHECK(said);
        if (!said)
            printf("  %s: %s\n", cases[i].text, why);
    }
}

/* Each way to cut one short, and one character less anywhere, is refused or means another token. */
TEST(token_cut_and_changed)
{
    char text[200], again[ZC_TOKEN_TEXT_MAX + 1];
    size_t len = strlen(GOOD);
    for (size_t n = 0; n < len; n++)
        CHECK(refused(zc_slice(GOOD, n)));
    for (size_t i = 0; i < len; i++) {
        for (int c = 1; c < 256; c++) {
            memcpy(text, GOOD, len + 1);
            if (text[i] == (char)c)
                continue;
            text[i] = (char)c;
            if (zc_token_decode(zc_slice(text, len), &token, why) != 0)
                continue;
            /* Strict: what is read can only have been written in one way, but for what is left
             * out as unknown. */
            CHECK_INT(zc_token_encode(&token, again), 0);
            CHECK(strcmp(again, text) == 0 || strlen(again) < len);
        }
    }
}

TEST(token_bounds)
{
    static char text[ZC_TOKEN_TEXT_MAX + 3], again[ZC_TOKEN_TEXT_MAX + 1];
    memset(text, 'A', sizeof(text));
    memcpy(text, "tc", 2);
    CHECK(refused(zc_slice(text, ZC_TOKEN_TEXT_MAX)));
    CHECK(strstr(why, "more than") == NULL);
    CHECK(refused(zc_slice(text, ZC_TOKEN_TEXT_MAX + 1)));
    CHECK(strstr(why, "more than the 4096") != NULL);

    memset(&token, 0, sizeof(token));
    token.node_key.b[0] = 1;
    token.regions_count = 1;
    token.regions[0].nodes_count = token.nodes_count = ZC_TOKEN_NODES_MAX;
    for (int i = 0; i < ZC_TOKEN_NODES_MAX; i++)
        memset(token.nodes[i].host, 'h', 100);
    CHECK_INT(zc_token_encode(&token, again), 0);
    CHECK_INT(zc_token_decode(zc_slice_str(again), &token, why), 0);
    CHECK_INT(token.nodes_count, ZC_TOKEN_NODES_MAX);
    memset(token.nodes[7].host, 'h', 255);
    CHECK_INT(zc_token_encode(&token, again), 0);
    CHECK_INT(zc_token_decode(zc_slice_str(again), &token, why), 0);
    CHECK_INT(strlen(token.nodes[7].host), 255);
    for (int i = 0; i < ZC_TOKEN_NODES_MAX; i++)
        memset(token.nodes[i].host, 'h', 255);
    CHECK_INT(zc_token_encode(&token, again), ZC_ELIMIT);
}

/* An embedded region of a map: STUN-only nodes are left out, ids are counted anew. */
TEST(token_leaves_out_what_can_be_put_back)
{
    char text[ZC_TOKEN_TEXT_MAX + 1];
    memset(&token, 0, sizeof(token));
    token.node_key.b[31] = 7;
    token.regions_count = 1;
    token.regions[0] = (struct zc_derpmap_region){.id = 900, .code = "lo", .name = "Loopback"};
    token.regions[0].nodes_count = token.nodes_count = 2;
    token.nodes[0] = (struct zc_derpmap_node){.name = "900s", .host = "stun", .stun_only = true};
    token.nodes[1] =
        (struct zc_derpmap_node){.name = "900a", .host = "127.0.0.1", .derp_port = 18443};
    CHECK_INT(zc_token_encode(&token, text), 0);
    memset(&token, 0xff, sizeof(token));
    CHECK_INT(zc_token_decode(zc_slice_str(text), &token, why), 0);
    CHECK_INT(token.regions_count, 1);
    CHECK_INT(token.nodes_count, 1);
    CHECK_INT(token.regions[0].id, 1);
    CHECK(strcmp(token.regions[0].code, "1") == 0);
    CHECK(strcmp(token.regions[0].name, "") == 0);
    CHECK(strcmp(token.nodes[0].name, "127.0.0.1") == 0);
    CHECK_INT(token.nodes[0].derp_port, 18443);
}

TEST(token_joinable)
{
    memset(&token, 0, sizeof(token));
    token.region_id = 3;
    CHECK_INT(zc_token_joinable(&token, why), ZC_EINVAL);
    CHECK(strstr(why, "disco key") != NULL);
    token.has_disco_key = true;
    CHECK_INT(zc_token_joinable(&token, why), 0);
    token.region_id = -1;
    CHECK_INT(zc_token_joinable(&token, why), ZC_EINVAL);
    CHECK(strstr(why, "no relay") != NULL);
    token.regions_count = 1;
    CHECK_INT(zc_token_joinable(&token, why), ZC_EINVAL);
    token.regions[0].nodes_count = token.nodes_count = 1;
    memcpy(token.nodes[0].host, "h", 2);
    CHECK_INT(zc_token_joinable(&token, why), 0);
}

TEST(token_line)
{
    static const struct {
        const char *file, *text, *words; /* text NULL: refused with words */
    } cases[] = {
        {"tcabc", "tcabc", NULL},
        {"tcabc\n", "tcabc", NULL},
        {"\xef\xbb\xbf  tcabc\t\r\n\r\n", "tcabc", NULL},
        {"", NULL, "empty"},
        {" \r\n\n", NULL, "empty"},
        {"\xef\xbb\xbf", NULL, "empty"},
        {"tcabc\ntcabc\n", NULL, "several"},
        {"# a comment\ntcabc\n", NULL, "several"},
        {"tcabc\rtcabc", NULL, "several"},
        {"\xff\xfet", NULL, "UTF-16"},
    };
    for (size_t i = 0; i < ZC_ARRAY_LEN(cases); i++) {
        struct zc_slice got = {0};
        int err = zc_token_line(zc_slice_str(cases[i].file), &got, why);
        CHECK_INT(err, cases[i].text != NULL ? 0 : ZC_EINVAL);
        if (cases[i].text != NULL)
            CHECK(zc_slice_is(got, cases[i].text));
        else
            CHECK(strstr(why, cases[i].words) != NULL);
    }
}

TEST(token_fingerprint)
{
    char a[ZC_TOKEN_FINGERPRINT_MAX], b[ZC_TOKEN_FINGERPRINT_MAX];
    zc_token_fingerprint(zc_slice_str(GOOD), a);
    zc_token_fingerprint(zc_slice(GOOD, strlen(GOOD) - 1), b);
    CHECK_INT(strlen(a), 16);
    CHECK_INT(strspn(a, "0123456789abcdef"), 16);
    CHECK(strcmp(a, b) != 0);
    zc_token_fingerprint(zc_slice_str(GOOD), b);
    CHECK(strcmp(a, b) == 0);
}
