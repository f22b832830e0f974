/* tunnel/{derpmap,jtree}.h: a real map's form, what is refused, when a stored one is good. */
#include "tunnel/derpmap.h"

#include "base/check.h"
#include "base/json.h"
#include "test.h"
#include "tunnel/jtree.h"

static struct zc_derpmap map;
static char why[ZC_DERPMAP_WHY_MAX];

static int parse(const char *json)
{
    memset(why, 0, sizeof(why));
    return zc_derpmap_parse(zc_slice_str(json), &map, why);
}

#define NODE "{\"Name\":\"1a\",\"RegionID\":1,\"HostName\":\"h.example\"}"

TEST(derpmap_whole)
{
    CHECK_INT(parse("{\"Regions\":{"
                    "\"900\":{\"RegionID\":900,\"RegionCode\":\"lo\",\"RegionName\":\"Loopback\","
                    "\"Latitude\":1.5,\"Longitude\":-2e3,\"Avoid\":true,\"Nodes\":["
                    "{\"Name\":\"900s\",\"HostName\":\"s\",\"STUNOnly\":true},"
                    "{\"Name\":\"900a\",\"RegionID\":900,\"HostName\":\"127.0.0.1\","
                    "\"CertName\":\"sha256-raw:00\",\"IPv4\":\"127.0.0.1\",\"IPv6\":\"none\","
                    "\"STUNPort\":-1,\"DERPPort\":18443,\"InsecureForTests\":true,"
                    "\"CanPort80\":true}]},"
                    "\"3\":{\"regionid\":3,\"regioncode\":\"x\",\"NODES\":[" NODE "],"
                    "\"NoMeasureNoHome\":true,\"Avoid\":null},"
                    "\"7\":{\"Nodes\":null},\"8\":null},"
                    "\"HomeParams\":{\"RegionScore\":{\"3\":0.5}},\"OmitDefaultRegions\":false}"),
              0);
    CHECK_INT(map.regions_count, 3);
    CHECK_INT(map.nodes_count, 3);
    const struct zc_derpmap_region *r = zc_derpmap_find(&map, 900);
    CHECK(r != NULL && strcmp(r->code, "lo") == 0 && strcmp(r->name, "Loopback") == 0);
    CHECK(r->avoid && !r->no_home && r->nodes_count == 2);
    const struct zc_derpmap_node *n = zc_derpmap_relay(&map, r);
    CHECK(n != NULL && strcmp(n->name, "900a") == 0 && strcmp(n->host, "127.0.0.1") == 0);
    CHECK(strcmp(n->ipv6, "none") == 0 && strcmp(n->ipv4, "127.0.0.1") == 0);
    CHECK(strcmp(n->cert, "sha256-raw:00") == 0 && n->insecure);
    CHECK_INT(n->stun_port, -1);
    CHECK_INT(zc_derpmap_port(n), 18443);
    r = zc_derpmap_find(&map, 3);
    CHECK(r != NULL && r->no_home && !r->avoid && strcmp(r->code, "x") == 0);
    CHECK_INT(zc_derpmap_port(zc_derpmap_relay(&map, r)), 443);
    r = zc_derpmap_find(&map, 7);
    CHECK(r != NULL && r->nodes_count == 0 && zc_derpmap_relay(&map, r) == NULL);
    CHECK(zc_derpmap_find(&map, 8) == NULL);
    for (uint32_t i = 1; i < map.regions_count; i++)
        CHECK(map.regions[i - 1].id < map.regions[i].id);
    zc_derpmap_done(&map);
    zc_derpmap_done(&map);
}

TEST(derpmap_refused)
{
    static const struct {
        const char *json, *words;
    } cases[] = {
        {"", "empty"},
        {" \n", "empty"},
        {"[]", "not a JSON object"},
        {"<html>", "not a JSON object"},
        {"{\"Regions\":", ""},
        {"{\"Regions\":{}}", "no relay"},
        {"{}", "no object Regions"},
        {"{\"Regions\":[]}", "no object Regions"},
        {"{\"Regions\":{\"1\":{\"Nodes\":[" NODE "]}}} x", "follows"},
        {"{\"Regions\":{\"01\":{\"Nodes\":[" NODE "]}}}", "region number"},
        {"{\"Regions\":{\"x\":{\"Nodes\":[" NODE "]}}}", "region number"},
        {"{\"Regions\":{\"0\":{\"Nodes\":[" NODE "]}}}", "region number"},
        {"{\"Regions\":{\"99999999999999999999\":{\"Nodes\":[" NODE "]}}}", "region number"},
        {"{\"Regions\":{\"1\":{\"Nodes\":[" NODE "]},\"1\":{}}}", "twice"},
        {"{\"Regions\":{\"1\":{\"Nodes\":[" NODE "],\"nodes\":[]}}}", "twice"},
        {"{\"Regions\":{\"1\":{\"Nodes\":{}}}}", "wrong type"},
        {"{\"Regions\":{\"1\":[]}}", "no object"},
        {"{\"Regions\":{\"1\":{\"Nodes\":[1]}}}", "no object"},
        {"{\"Regions\":{\"1\":{\"Nodes\":[{\"HostName\":7}]}}}", "no text"},
        {"{\"Regions\":{\"1\":{\"Nodes\":[{\"HostName\":\"a b\"}]}}}", "characters"},
        {"{\"Regions\":{\"1\":{\"Nodes\":[{\"HostName\":\"a\\r\\nX: y\"}]}}}", "characters"},
        {"{\"Regions\":{\"1\":{\"Nodes\":[{\"HostName\":\"a\\u0000\"}]}}}", "zero"},
        {"{\"Regions\":{\"1\":{\"Nodes\":[{\"Name\":\"\\ud800\"}]}}}", ""},
        {"{\"Regions\":{\"1\":{\"Nodes\":[{\"Name\":\"\xff\"}]}}}", "UTF-8"},
        {"{\"Regions\":{\"1\":{\"Nodes\":[{\"DERPPort\":65536}]}}}", "port"},
        {"{\"Regions\":{\"1\":{\"Nodes\":[{\"DERPPort\":-1}]}}}", "port"},
        {"{\"Regions\":{\"1\":{\"Nodes\":[{\"DERPPort\":1.5}]}}}", "port"},
        {"{\"Regions\":{\"1\":{\"Nodes\":[{\"STUNPort\":1e300}]}}}", "port"},
        {"{\"Regions\":{\"1\":{\"Nodes\":[{\"STUNOnly\":1}]}}}", "true or false"},
        {"{\"Regions\":{\"1\":{\"Nodes\":[{\"HostName\":\"h\",\"STUNOnly\":true}]}}}", "no relay"},
    };
    for (size_t i = 0; i < ZC_ARRAY_LEN(cases); i++) {
        map = (struct zc_derpmap){.nodes_count = 77};
        bool good = parse(cases[i].json) < 0 && strstr(why, cases[i].words) != NULL &&
                    why[0] != '\0' && map.nodes_count == 77;
        CHECK(good);
        if (!good)
            printf("  %s: %s\n", cases[i].json, why);
    }
}

/* Documents that would cost much memory or time end early. */
TEST(derpmap_hostile)
{
    size_t len = ZC_DERPMAP_BYTES_MAX + 1;
    char *big = malloc(len);
    CHECK(big != NULL);
    memset(big, ' ', len);
    CHECK_INT(zc_derpmap_parse(zc_slice(big, len), &map, why), ZC_ELIMIT);
    len--;
    for (size_t i = 0; i < len; i++)
        big[i] = "[],"[i % 3];
    memcpy(big, "{\"Regions\":{\"1\":[", 17);
    CHECK_INT(zc_derpmap_parse(zc_slice(big, len), &map, why), ZC_ELIMIT);
    memset(big, '[', len);
    memcpy(big, "{\"a\":", 5);
    CHECK(zc_derpmap_parse(zc_slice(big, 10000), &map, why) < 0);
    free(big);

    struct zc_buf b = {0};
    char key[32];
    CHECK_INT(zc_json_put_raw(&b, "{\"Regions\":{"), 0);
    for (int i = 1; i <= ZC_DERPMAP_REGIONS_MAX + 1; i++) {
        snprintf(key, sizeof(key), "%s\"%d\":{}", i > 1 ? "," : "", i);
        CHECK_INT(zc_json_put_raw(&b, key), 0);
    }
    CHECK_INT(zc_json_put_raw(&b, "}}"), 0);
    CHECK_INT(zc_derpmap_parse(zc_slice(b.data, b.len), &map, why), ZC_ELIMIT);
    zc_buf_done(&b);
}

TEST(derpmap_when_a_stored_one_is_good)
{
    CHECK_INT(zc_derpmap_plan(false, 0), ZC_DERPMAP_FETCH);
    CHECK_INT(zc_derpmap_plan(true, 0), ZC_DERPMAP_USE);
    CHECK_INT(zc_derpmap_plan(true, 3599), ZC_DERPMAP_USE);
    CHECK_INT(zc_derpmap_plan(true, 3600), ZC_DERPMAP_REVALIDATE);
    CHECK_INT(zc_derpmap_plan(true, -1), ZC_DERPMAP_REVALIDATE);
    CHECK_INT(zc_derpmap_result(200, true, false), ZC_DERPMAP_STORE);
    CHECK_INT(zc_derpmap_result(200, true, true), ZC_DERPMAP_STORE);
    CHECK_INT(zc_derpmap_result(200, false, true), ZC_DERPMAP_FALL_BACK);
    CHECK_INT(zc_derpmap_result(200, false, false), ZC_DERPMAP_FAIL);
    CHECK_INT(zc_derpmap_result(304, false, true), ZC_DERPMAP_UNCHANGED);
    CHECK_INT(zc_derpmap_result(304, false, false), ZC_DERPMAP_FAIL);
    CHECK_INT(zc_derpmap_result(0, false, true), ZC_DERPMAP_FALL_BACK);
    CHECK_INT(zc_derpmap_result(500, true, false), ZC_DERPMAP_FAIL);
}

TEST(jtree_members)
{
    static const char json[] = "{\"n\":12,\"N2\":-9007199254740991,\"big\":9007199254740993,"
                               "\"s\":\"four\",\"b\":true,\"nil\":null,\"d\":1,\"D\":2}";
    struct cJSON *tree = NULL;
    const struct cJSON *member = NULL;
    const char *wrong = NULL;
    int64_t n = 5;
    char text[5] = "";
    bool b = false;
    CHECK_INT(zc_jtree_parse(zc_slice_str(json), 100, &tree, &wrong), 0);
    CHECK(zc_jtree_int(tree, "n", 0, 12, &n) && n == 12);
    CHECK(!zc_jtree_int(tree, "n", 0, 11, &n) && !zc_jtree_int(tree, "n", 13, 20, &n));
    CHECK(zc_jtree_int(tree, "n2", INT64_MIN, 0, &n) && n == -9007199254740991);
    CHECK(!zc_jtree_int(tree, "big", INT64_MIN, INT64_MAX, &n));
    CHECK(!zc_jtree_int(tree, "s", 0, 9, &n));
    CHECK(zc_jtree_int(tree, "nil", 0, 9, &n) && zc_jtree_int(tree, "absent", 0, 9, &n));
    CHECK_INT(n, -9007199254740991);
    CHECK(zc_jtree_text(tree, "s", text, 5) && strcmp(text, "four") == 0);
    CHECK(!zc_jtree_text(tree, "s", text, 4));
    CHECK(!zc_jtree_text(tree, "n", text, 5));
    CHECK(zc_jtree_bool(tree, "B", &b) && b);
    CHECK(!zc_jtree_member(tree, "d", &member) && member == NULL);
    zc_jtree_free(tree, true);
    CHECK_INT(zc_jtree_parse(zc_slice_str(json), 3, &tree, &wrong), ZC_ELIMIT);
    zc_jtree_free(NULL, true);
}
