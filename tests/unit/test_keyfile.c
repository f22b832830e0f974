/* host/keyfile.h: the vectors' keys, damage, who may read it, writing whole or not at all. */
#include "host/keyfile.h"

#include <dirent.h>
#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "host/secretfile.h"
#include "test.h"
#include "vector.h"

static struct zc_keyfile keys, more;
static char why[ZC_KEYFILE_WHY_MAX];
static char dir[64], path[128];

static void folder(void)
{
    snprintf(dir, sizeof(dir), "/tmp/zckeyXXXXXX");
    CHECK(mkdtemp(dir) != NULL);
    snprintf(path, sizeof(path), "%s/hub.key", dir);
}

/* Removes the folder; its entries are counted. */
static int folder_end(void)
{
    int count = 0;
    struct dirent *e;
    DIR *d = opendir(dir);
    CHECK(d != NULL);
    while (d != NULL && (e = readdir(d)) != NULL) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        count++;
        CHECK(unlinkat(dirfd(d), e->d_name, 0) == 0);
    }
    if (d != NULL)
        closedir(d);
    rmdir(dir);
    return count;
}

static void write_file(const char *text, mode_t mode)
{
    FILE *f = fopen(path, "w");
    CHECK(f != NULL && fputs(text, f) >= 0);
    fclose(f);
    CHECK(chmod(path, mode) == 0);
}

static bool same(const struct zc_keyfile *a, const struct zc_keyfile *b)
{
    return memcmp(a->private_key.b, b->private_key.b, 32) == 0 &&
           memcmp(a->node_key.b, b->node_key.b, 32) == 0 &&
           memcmp(a->disco_private.b, b->disco_private.b, 32) == 0 &&
           memcmp(a->disco_key.b, b->disco_key.b, 32) == 0 && a->has_psk == b->has_psk &&
           memcmp(a->psk.b, b->psk.b, 32) == 0 && a->region_kind == b->region_kind &&
           a->region_id == b->region_id && memcmp(&a->region, &b->region, sizeof(a->region)) == 0 &&
           memcmp(a->nodes, b->nodes, sizeof(a->nodes)) == 0;
}

static int decode(const char *text)
{
    memset(why, 0, sizeof(why));
    return zc_keyfile_decode(zc_slice_str(text), &keys, why);
}

TEST(keyfile_vectors)
{
    struct vec_each it = vec_each(vec_section("keys"));
    struct zc_json_value value;
    int seen = 0;
    while (vec_next(&it, &value)) {
        char text[1024];
        struct vec v = vec_object(value);
        snprintf(text, sizeof(text),
                 "{\"Private\":\"%.*s\",\"Public\":{\"ServerPublic\":\"%.*s\","
                 "\"ServerDiscoPublic\":\"%.*s\",\"RegionID\":%d}}",
                 (int)vec_text(&v, "node_private_text").len, vec_text(&v, "node_private_text").data,
                 (int)vec_text(&v, "node_public_text").len, vec_text(&v, "node_public_text").data,
                 (int)vec_text(&v, "disco_public_text").len, vec_text(&v, "disco_public_text").data,
                 seen - 1);
        CHECK_INT(decode(text), 0);
        CHECK(vec_is(&v, "node_private", keys.private_key.b, 32));
        CHECK(vec_is(&v, "node_public", keys.node_key.b, 32));
        CHECK(vec_is(&v, "disco_private", keys.disco_private.b, 32));
        CHECK(vec_is(&v, "disco_public", keys.disco_key.b, 32));
        CHECK(!keys.has_psk);
        CHECK_INT(keys.region_kind, seen == 1 ? ZC_KEYFILE_REGION_NONE : ZC_KEYFILE_REGION_ID);
        CHECK_INT(keys.region_id, seen - 1);
        seen++;
    }
    CHECK_INT(seen, 5);
}

#define PRIVATE "privkey:404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f"
#define NODE_KEY "nodekey:79a631eede1bf9c98f12032cdeadd0e7a079398fc786b88cc846ec89af85a51a"
#define DISCO_KEY "discokey:88edca66caaaebce058234eddff1b39f0a3116e4946b76614b625b224757cd71"
#define PSK "psk:0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20"
#define ZERO "0000000000000000000000000000000000000000000000000000000000000000"
#define BOTH "\"ServerPublic\":\"" NODE_KEY "\",\"ServerDiscoPublic\":\"" DISCO_KEY "\""
#define PUBLIC(more) "{\"Private\":\"" PRIVATE "\",\"Public\":{" BOTH more "}}"

TEST(keyfile_forms)
{
    CHECK_INT(decode(PUBLIC("")), 0);
    CHECK_INT(keys.region_kind, ZC_KEYFILE_REGION_NONE);
    CHECK_INT(decode(PUBLIC(",\"PresharedKey\":\"" PSK "\",\"RegionID\":-1")), 0);
    CHECK(keys.has_psk && keys.psk.b[0] == 1 && keys.psk.b[31] == 32);
    CHECK_INT(keys.region_id, -1);
    CHECK_INT(decode(PUBLIC(",\"PresharedKey\":\"psk:" ZERO "\",\"Region\":null")), 0);
    CHECK(!keys.has_psk);
    CHECK_INT(keys.region_kind, ZC_KEYFILE_REGION_NONE);
    /* As for a relay given by its name alone. */
    CHECK_INT(decode(PUBLIC(",\"Region\":[{\"RegionID\":0,\"RegionCode\":\"\",\"RegionName\":\"\","
                            "\"Nodes\":[{\"Name\":\"\",\"HostName\":\"relay.example\"}]}]")),
              0);
    CHECK_INT(keys.region_kind, ZC_KEYFILE_REGION_FULL);
    CHECK_INT(keys.region.id, 1);
    CHECK_INT(keys.region.nodes_count, 1);
    CHECK(strcmp(keys.nodes[0].host, "relay.example") == 0);
    CHECK_INT(decode("{\"Private\":\"" PRIVATE "\"}"), 0);
    CHECK_INT(decode("{\"Private\":\"" PRIVATE "\",\"Public\":{\"ServerPublic\":\"" NODE_KEY
                     "\",\"ServerDiscoPublic\":\"discokey:" ZERO "\"},\"Later\":[1]}"),
              0);
}

TEST(keyfile_refused)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"", "empty"},
        {"tco2FwWC", "not a JSON object"},
        {"{}", "no private key"},
        {"{\"Private\":\"\"}", "no private key"},
        {"{\"Private\":\"privkey:" ZERO "\"}", "no private key"},
        {"{\"Private\":\"privkey:4041\"}", "64 hex digits"},
        {"{\"Private\":\"" NODE_KEY "\"}", "64 hex digits"},
        {"{\"Private\":7}", "64 hex digits"},
        {"{\"Private\":\"" PRIVATE "\",\"private\":\"" PRIVATE "\"}", "64 hex digits"},
        {"{\"Private\":\"" PRIVATE "\",\"Public\":[]}", "not an object"},
        {"{\"Private\":\"" PRIVATE "\",\"Public\":{\"ServerPublic\":\"" DISCO_KEY "\"}}",
         "not a key"},
        {"{\"Private\":\"" PRIVATE "\",\"Public\":{\"ServerPublic\":\"nodekey"
         ":79a631eede1bf9c98f12032cdeadd0e7a079398fc786b88cc846ec89af85a51b\"}}",
         "do not belong"},
        {PUBLIC(",\"PresharedKey\":\"psk:00\""), "PresharedKey"},
        {PUBLIC(",\"RegionID\":-2"), "RegionID"},
        {PUBLIC(",\"RegionID\":1.5"), "RegionID"},
        {PUBLIC(",\"Region\":{}"), "not a list"},
        {PUBLIC(",\"Region\":[{},{}]"), "several"},
        {PUBLIC(",\"Region\":[null]"), "cannot be used"},
        {PUBLIC(",\"Region\":[{\"Nodes\":[{},{},{},{},{}]}]"), "too many"},
        {PUBLIC(",\"Region\":[{\"Nodes\":[{\"HostName\":\"a b\"}]}]"), "characters"},
    };
    for (size_t i = 0; i < ZC_ARRAY_LEN(cases); i++) {
        memset(&keys, 0x5a, sizeof(keys));
        more = keys;
        bool good = decode(cases[i].text) < 0 && strstr(why, cases[i].words) != NULL &&
                    memcmp(&keys, &more, sizeof(keys)) == 0 && strstr(why, "4041") == NULL;
        CHECK(good);
        if (!good)
            printf("  %s: %s\n", cases[i].text, why);
    }
}

/* Any digit changed or any byte missing: refused. Never another identity by accident. */
TEST(keyfile_damage)
{
    char text[] = PUBLIC(",\"PresharedKey\":\"" PSK "\",\"RegionID\":900");
    size_t len = strlen(text), start = (size_t)(strstr(text, "privkey:") - text) + 8;
    for (size_t i = start; i < start + 64; i++) {
        char was = text[i];
        text[i] = was == '0' ? '1' : '0';
        /* The lowest three bits and the two highest are set by the curve: another text of the same
         * key, but not of the disco key. */
        CHECK(decode(text) < 0);
        text[i] = was;
    }
    for (size_t n = 0; n < len; n++)
        CHECK(zc_keyfile_decode(zc_slice(text, n), &keys, why) < 0);
    CHECK_INT(decode(text), 0);
}

static void node_fill(struct zc_derpmap_node *node, uint32_t n)
{
    *node = (struct zc_derpmap_node){
        .name = "900a", .host = "127.0.0.1", .cert = "sha256-raw:00", .ipv6 = "none"};
    if (n % 2 == 1)
        memcpy(node->ipv4, "127.0.0.1", 10);
    node->stun_port = (int32_t)n - 1;
    node->derp_port = n % 3 != 0 ? 18443 : 0;
    node->stun_only = n == 3;
    node->insecure = n == 2;
}

TEST(keyfile_round_trip)
{
    for (int i = 0; i < 40; i++) {
        struct zc_buf text = {0};
        zc_keyfile_generate(i % 2 == 0 ? ZC_KEYFILE_HUB : ZC_KEYFILE_SPOKE, &keys);
        CHECK_INT(keys.has_psk, i % 2 == 0);
        CHECK_INT(keys.region_kind, i % 2 == 0 ? ZC_KEYFILE_REGION_ID : ZC_KEYFILE_REGION_NONE);
        CHECK((keys.private_key.b[0] & 7) == 0 && (keys.private_key.b[31] & 0xc0) == 0x40);
        if (i % 4 == 0) {
            keys.region_kind = ZC_KEYFILE_REGION_FULL;
            keys.region_id = 0;
            keys.region = (struct zc_derpmap_region){.id = 900,
                                                     .code = "l\"o",
                                                     .name = "Lö\\op <&>",
                                                     .nodes_count = (uint32_t)i / 4 % 5};
            for (uint32_t n = 0; n < keys.region.nodes_count; n++)
                node_fill(&keys.nodes[n], n);
        }
        CHECK_INT(zc_keyfile_encode(&keys, &text), 0);
        CHECK_INT(zc_keyfile_decode(zc_slice(text.data, text.len), &more, why), 0);
        CHECK(same(&keys, &more));
        zc_secretfile_done(&text);
        zc_keyfile_done(&keys);
        zc_keyfile_done(&more);
        CHECK(sodium_is_zero(keys.private_key.b, 32) && sodium_is_zero(keys.psk.b, 32) &&
              sodium_is_zero(keys.disco_private.b, 32));
    }
}

TEST(keyfile_made_when_missing)
{
    struct stat st;
    bool made = false;
    folder();
    mode_t old = umask(0777);
    CHECK_INT(zc_keyfile_open(path, ZC_KEYFILE_HUB, &keys, &made, why), 0);
    umask(old);
    CHECK(made);
    CHECK(stat(path, &st) == 0 && (st.st_mode & 07777) == 0600);
    CHECK_INT(zc_keyfile_open(path, ZC_KEYFILE_SPOKE, &more, &made, why), 0);
    CHECK(!made && same(&keys, &more));
    CHECK_INT(zc_keyfile_save(path, &keys, false, why), ZC_EEXIST);
    zc_keyfile_generate(ZC_KEYFILE_HUB, &keys);
    CHECK_INT(zc_keyfile_save(path, &keys, true, why), 0);
    CHECK_INT(zc_keyfile_load(path, &more, why), 0);
    CHECK(same(&keys, &more));
    CHECK(stat(path, &st) == 0 && (st.st_mode & 07777) == 0600);
    CHECK_INT(folder_end(), 1); /* no temporary file is left */

    CHECK_INT(zc_keyfile_load(path, &more, why), ZC_ENOENT);
    CHECK_INT(zc_keyfile_open(path, ZC_KEYFILE_HUB, &more, &made, why), ZC_ENOENT);
    CHECK(strstr(why, "directory does not exist") != NULL);
    CHECK_INT(zc_keyfile_save("/tmp/", &keys, true, why), ZC_EINVAL);
}

/* Several start at once: they agree on one identity. */
TEST(keyfile_made_by_many_at_once)
{
    int status = 0, good = 0;
    folder();
    for (int i = 0; i < 8; i++) {
        if (fork() != 0)
            continue;
        bool made;
        char copy[160];
        int err = zc_keyfile_open(path, ZC_KEYFILE_HUB, &keys, &made, why);
        snprintf(copy, sizeof(copy), "%s.%d", path, i);
        _exit(err != 0 || zc_keyfile_save(copy, &keys, false, why) != 0);
    }
    while (wait(&status) > 0)
        good += WIFEXITED(status) && WEXITSTATUS(status) == 0;
    CHECK_INT(good, 8);
    CHECK_INT(zc_keyfile_load(path, &keys, why), 0);
    for (int i = 0; i < 8; i++) {
        char copy[160];
        snprintf(copy, sizeof(copy), "%s.%d", path, i);
        CHECK_INT(zc_keyfile_load(copy, &more, why), 0);
        CHECK(same(&keys, &more));
    }
    CHECK_INT(folder_end(), 9);
}

TEST(keyfile_modes)
{
    static const struct {
        mode_t mode;
        int want, want_root; /* root's own, of group root */
    } cases[] = {
        {0600, 0, 0},
        {0400, 0, 0},
        {0700, 0, 0},
        {0440, ZC_EACCES, 0},
        {0640, ZC_EACCES, 0},
        {0660, ZC_EACCES, ZC_EACCES},
        {0604, ZC_EACCES, ZC_EACCES},
        {0644, ZC_EACCES, ZC_EACCES},
        {0602, ZC_EACCES, ZC_EACCES},
        {0610, ZC_EACCES, ZC_EACCES},
    };
    folder();
    for (size_t i = 0; i < ZC_ARRAY_LEN(cases); i++) {
        struct stat st;
        unlink(path);
        write_file(PUBLIC(""), cases[i].mode);
        CHECK(stat(path, &st) == 0);
        bool roots = st.st_uid == 0 && st.st_gid == 0;
        CHECK_INT(zc_keyfile_load(path, &keys, why), roots ? cases[i].want_root : cases[i].want);
        if (roots && cases[i].want == ZC_EACCES) { /* another group may read it */
            CHECK(chown(path, 0, 12) == 0 && chmod(path, cases[i].mode) == 0);
            CHECK_INT(zc_keyfile_load(path, &keys, why), ZC_EACCES);
            CHECK(strstr(why, "chmod 600") != NULL);
        }
    }
    CHECK_INT(folder_end(), 1);
}

/* Somebody else's file: refused, but for root. Only root can set this up. */
TEST(keyfile_owners)
{
    int status = 1;
    folder();
    write_file(PUBLIC(""), 0644);
    if (geteuid() != 0) { /* root's files are good, others' cannot be made here */
        printf("keyfile_owners: not root, so only the own file is tried\n");
        CHECK(chmod(path, 0600) == 0);
        CHECK_INT(zc_keyfile_load(path, &keys, why), 0);
        CHECK_INT(folder_end(), 1);
        return;
    }
    CHECK(chown(path, 1, 1) == 0 && chmod(dir, 0755) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        if (setgid(65534) != 0 || setuid(65534) != 0)
            _exit(2);
        int err = zc_keyfile_load(path, &keys, why);
        _exit(!(err == ZC_EACCES && strstr(why, "another user (uid 1)") != NULL));
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(chmod(path, 0600) == 0);
    CHECK_INT(zc_keyfile_load(path, &keys, why), 0);
    CHECK_INT(folder_end(), 1);
}

TEST(keyfile_other_things)
{
    folder();
    CHECK(mkfifo(path, 0600) == 0);
    CHECK_INT(zc_keyfile_load(path, &keys, why), ZC_EINVAL); /* and does not wait */
    CHECK_INT(zc_keyfile_load(dir, &keys, why), ZC_EINVAL);
    unlink(path);
    write_file("{", 0600);
    CHECK(truncate(path, ZC_KEYFILE_BYTES_MAX + 1) == 0);
    CHECK_INT(zc_keyfile_load(path, &keys, why), ZC_ELIMIT);
    unlink(path);
    /* A link to the file is fine, one into nothing is kept as it is. */
    CHECK(symlink("target", path) == 0);
    bool made;
    CHECK(zc_keyfile_open(path, ZC_KEYFILE_HUB, &keys, &made, why) == ZC_ENOENT);
    CHECK_INT(folder_end(), 1);
}
