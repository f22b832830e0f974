/* daemons/hub_allow.h: lists of keys in files, against a naive model; what is no list. */
#include "../../daemons/hub_allow.h"

#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

#define KEYS 8
#define ALL ((1u << KEYS) - 1)

static char dir[64], allow_path[128], revoked_path[128];
static struct zc_hub_options options;
static struct zc_hub_allow lists;
static char why[ZC_HUB_ALLOW_WHY_MAX];

static struct zc_key key(unsigned i)
{
    struct zc_key k;
    memset(k.b, (int)(0x10 + i), sizeof(k.b));
    return k;
}

static void start(bool place)
{
    strcpy(dir, "/tmp/zc-allow-XXXXXX");
    CHECK(mkdtemp(dir) != NULL);
    snprintf(allow_path, sizeof(allow_path), "%s/allow", dir);
    snprintf(revoked_path, sizeof(revoked_path), "%s/revoked", dir);
    options = (struct zc_hub_options){.allow_file = allow_path};
    zc_hub_allow_init(&lists, &options, place ? revoked_path : "");
}

static void end(void)
{
    zc_hub_allow_done(&lists);
    unlink(allow_path);
    unlink(revoked_path);
    CHECK_INT(rmdir(dir), 0); /* nothing else was left */
}

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    CHECK(f != NULL && fputs(text, f) >= 0 && fclose(f) == 0);
}

/* The keys of a set, as people write them. */
static void put_set(const char *path, unsigned set, unsigned style)
{
    static const char *const before[] = {"", "  ", "# a comment\n\n", "\t"};
    static const char *const after[] = {"", "\t# one\r", "", "# two"};
    char text[8192] = "", name[ZC_SECRET_TEXT_MAX];
    for (unsigned i = 0; i < KEYS; i++) {
        struct zc_key k = key(i);
        if ((set >> i & 1) == 0)
            continue;
        zc_secret_encode(ZC_SECRET_NODE_KEY, k.b, name);
        size_t at = strlen(text);
        snprintf(text + at, sizeof(text) - at, "%s%s%s\n", before[(style + i) % 4], name,
                 after[(style + i) % 4]);
    }
    if (style % 2 == 1 && text[0] != '\0')
        text[strlen(text) - 1] = '\0'; /* the last line has no end */
    put(path, text);
}

/* Which of the keys count. */
static unsigned set_of(const struct zc_hub_keys *l)
{
    unsigned set = 0;
    for (unsigned i = 0; i < KEYS; i++) {
        struct zc_key k = key(i);
        set |= (unsigned)zc_hub_keys_has(l, &k) << i;
    }
    return set;
}

static unsigned set_of_file(void)
{
    struct zc_hub_keys l = {0};
    char text[ZC_HUB_KEYS_WHY_MAX];
    int err = zc_hub_keys_read(&l, revoked_path, NULL, text);
    unsigned set = set_of(&l);
    CHECK(err == 0 || err == ZC_ENOENT);
    zc_hub_keys_done(&l);
    return set;
}

/* What the model believes: sets of keys as bits. */
struct model {
    unsigned fixed, allow_file, revoked_file; /* on the disk */
    bool allow_bad, revoked_bad, place;
    unsigned allowed, stored, unsaved; /* in the process */
};

static void check(const struct model *m)
{
    unsigned out = m->stored | m->unsaved;
    CHECK_INT(set_of(&lists.in), m->allowed & ~out);
    for (unsigned i = 0; i < KEYS; i++) {
        struct zc_key k = key(i);
        CHECK_INT(zc_hub_allow_is_revoked(&lists, &k), out >> i & 1);
    }
    if (m->place && !m->revoked_bad)
        CHECK_INT(set_of_file(), m->revoked_file);
}

static void do_load(struct model *m)
{
    bool bad = m->allow_bad || (m->revoked_bad && m->place);
    int err = zc_hub_allow_load(&lists, why);
    CHECK_INT(err != 0, bad);
    if (bad) {
        CHECK(strstr(why, m->allow_bad ? allow_path : revoked_path) != NULL);
        CHECK(strstr(why, "line 2 ") != NULL);
        return;
    }
    m->allowed = m->fixed | m->allow_file;
    m->stored = m->place ? m->revoked_file : 0;
}

static void do_revoke(struct model *m, unsigned i)
{
    struct zc_key k = key(i);
    bool stored;
    int err = zc_hub_allow_revoke(&lists, &k, &stored, why);
    m->unsaved |= 1u << i;
    CHECK_INT(stored, m->place);
    CHECK_INT(err != 0, m->place && m->revoked_bad);
    if (!m->place || err != 0)
        return;
    m->stored = m->revoked_file |= m->unsaved;
    m->unsaved = 0;
}

static void step(struct model *m)
{
    unsigned style = (unsigned)rand() % 4;
    switch (rand() % 8) {
    case 0:
        m->allow_file = (unsigned)rand() & ALL;
        m->allow_bad = false;
        put_set(allow_path, m->allow_file, style);
        break;
    case 1:
        m->revoked_file = (unsigned)(rand() & rand()) & ALL;
        m->revoked_bad = false;
        put_set(revoked_path, m->revoked_file, style);
        break;
    case 2:
        m->allow_bad = true;
        put(allow_path, "\nnodekey:1\n");
        break;
    case 3:
        m->revoked_bad = true;
        put(revoked_path, "#\nx");
        break;
    case 4: /* a restart */
        zc_hub_allow_done(&lists);
        zc_hub_allow_init(&lists, &options, m->place ? revoked_path : "");
        m->allowed = m->stored = m->unsaved = 0;
        do_load(m);
        break;
    case 5:
        do_load(m);
        break;
    default:
        do_revoke(m, (unsigned)rand() % KEYS);
        break;
    }
}

static void play(bool place)
{
    struct zc_key fixed[] = {key(0), key(3)};
    struct model m = {.fixed = 1u << 0 | 1u << 3, .place = place};
    srand(place ? 7 : 8);
    start(place);
    options.allow = fixed;
    options.allow_count = 2;
    put(allow_path, "");
    do_load(&m);
    for (int i = 0; i < (place ? 250 : 3000); i++) { /* a key that is stored is synced */
        step(&m);
        check(&m);
    }
    end();
}

TEST(allow_and_revoked_against_a_model)
{
    play(true);
}

TEST(without_a_place)
{
    play(false);
}

TEST(what_is_no_list)
{
    static const char good[] =
        "nodekey:1111111111111111111111111111111111111111111111111111111111111111";
    static const char *const bad[] = {"x",     "nodekey:", "nodekey:1", "%s1",
                                      "%s %s", "%s,",      "key:%s",    "\xef\xbb\xbf%s"};
    char text[512];
    start(true);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const char *at = strstr(bad[i], "%s");
        int head = at != NULL ? (int)(at - bad[i]) : (int)strlen(bad[i]);
        snprintf(text, sizeof(text), "%s\n%.*s%s%s\n", good, head, bad[i], at != NULL ? good : "",
                 at != NULL ? at + 2 : "");
        put(allow_path, text);
        CHECK_INT(zc_hub_allow_load(&lists, why), ZC_EINVAL);
        CHECK(strstr(why, "line 2 is no nodekey") != NULL);
    }
    put(allow_path, good);
    CHECK_INT(zc_hub_allow_load(&lists, why), 0);
    CHECK_INT(lists.in.count, 1);
    CHECK(zc_hub_allow_warning(&lists) == NULL);
    /* a file that is too long, a directory, none */
    CHECK_INT(truncate(allow_path, ZC_HUB_KEYS_FILE_MAX + 1), 0);
    CHECK(zc_hub_allow_load(&lists, why) != 0);
    unlink(allow_path);
    CHECK_INT(zc_hub_allow_load(&lists, why), ZC_ENOENT);
    CHECK_INT(mkdir(allow_path, 0700), 0);
    CHECK(zc_hub_allow_load(&lists, why) != 0);
    CHECK_INT(rmdir(allow_path), 0);
    CHECK_INT(lists.in.count, 1);
    end();
}

/* A full file is not written so long that it could not be read again. */
TEST(a_file_that_is_full)
{
    struct zc_key k = key(1);
    bool stored;
    start(true);
    put(allow_path, "");
    FILE *f = fopen(revoked_path, "w");
    CHECK(f != NULL);
    for (unsigned i = 0; i < ZC_HUB_KEYS_FILE_MAX - 10; i++)
        fputc(i == 0 ? '#' : ' ', f);
    CHECK_INT(fclose(f), 0);
    CHECK_INT(zc_hub_allow_load(&lists, why), 0);
    CHECK_INT(zc_hub_allow_revoke(&lists, &k, &stored, why), ZC_ENOSPC);
    CHECK(strstr(why, revoked_path) != NULL);
    CHECK(zc_hub_allow_is_revoked(&lists, &k));
    CHECK_INT(zc_hub_allow_load(&lists, why), 0);
    CHECK(zc_hub_allow_is_revoked(&lists, &k)); /* and a reload does not forget it */
    end();
}

TEST(warnings)
{
    start(true);
    put(allow_path, "# nobody\n");
    CHECK_INT(zc_hub_allow_load(&lists, why), 0);
    CHECK(strstr(zc_hub_allow_warning(&lists), "no spoke can come in") != NULL);
    put_set(allow_path, 3, 0);
    put_set(revoked_path, 3, 0);
    CHECK_INT(zc_hub_allow_load(&lists, why), 0);
    CHECK(strstr(zc_hub_allow_warning(&lists), "no spoke can come in") != NULL);
    put_set(revoked_path, 1, 0);
    CHECK_INT(zc_hub_allow_load(&lists, why), 0);
    CHECK(zc_hub_allow_warning(&lists) == NULL);
    options.allow_file = NULL;
    CHECK_INT(zc_hub_allow_load(&lists, why), 0);
    CHECK(!zc_hub_allow_on(&lists));
    CHECK(strstr(zc_hub_allow_warning(&lists), "no list of allowed keys is on") != NULL);
    end();
}

#ifdef ZC_TEST_WRAP

#include "no_memory.h"

/* The n-th allocation of a reload and of a revoke fails. Afterwards both work. */
static bool run(long n)
{
    struct zc_key k = key(1);
    bool stored;
    start(true);
    put_set(allow_path, 0x07, 0);
    put_set(revoked_path, 0x01, 1);
    CHECK_INT(zc_hub_allow_load(&lists, why), 0);
    put_set(allow_path, 0x0e, 0);
    no_memory(n, false);
    armed = true;
    int err = zc_hub_allow_load(&lists, why);
    armed = false;
    bool any = failed;
    CHECK_INT(err, any ? ZC_ENOMEM : 0);
    CHECK_INT(set_of(&lists.in), any ? 0x06 : 0x0e);
    CHECK_INT(zc_hub_allow_load(&lists, why), 0);
    no_memory(n, false);
    armed = true;
    err = zc_hub_allow_revoke(&lists, &k, &stored, why);
    armed = false;
    any |= failed;
    CHECK_INT(err, failed ? ZC_ENOMEM : 0);
    CHECK_INT(zc_hub_allow_revoke(&lists, &k, &stored, why), 0);
    CHECK_INT(set_of(&lists.in), 0x0c);
    CHECK_INT(set_of_file(), 0x03);
    end();
    return any;
}

TEST(memory_that_is_refused)
{
    long n = 0;
    while (run(n))
        n++;
    CHECK(n >= 5);
}

#endif
