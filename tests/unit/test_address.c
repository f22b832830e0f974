/* Address texts: every form, and every way to get one wrong. */
#include "base/address.h"

#include "test.h"

static const struct {
    const char *text, *canonical, *why;
} cases[] = {
    {"unix:///run/z.sock", "unix:///run/z.sock", NULL},
    {"/run/z.sock", "unix:///run/z.sock", NULL},
    {"./z.sock", "unix://./z.sock", NULL},
    {"../z.sock", "unix://../z.sock", NULL},
    {"unix://rel", "unix://rel", NULL},
    {"/with:80", "unix:///with:80", NULL},
    {"tcp://127.0.0.1:5555", "tcp://127.0.0.1:5555", NULL},
    {"127.0.0.1:0", "tcp://127.0.0.1:0", NULL},
    {"localhost:65535", "tcp://localhost:65535", NULL},
    {"[::1]:5555", "tcp://[::1]:5555", NULL},
    {"tcp://[fe80::1%eth0]:1", "tcp://[fe80::1%eth0]:1", NULL},
    {"nonsense", NULL, "want unix://, tcp://, path, or host:port"},
    {"", NULL, "want unix://, tcp://, path, or host:port"},
    {"no/such:80", NULL, "want unix://, tcp://, path, or host:port"},
    {"a b:80", NULL, "want unix://, tcp://, path, or host:port"},
    {"http://x:80", NULL, "unknown scheme"},
    {"unix://", NULL, "the path is empty"},
    {"tcp://127.0.0.1:99999", NULL, "invalid port"},
    {"tcp://127.0.0.1:65536", NULL, "invalid port"},
    {"tcp://127.0.0.1:", NULL, "invalid port"},
    {"tcp://127.0.0.1:-1", NULL, "invalid port"},
    {"tcp://127.0.0.1:+80", NULL, "invalid port"},
    {"tcp://127.0.0.1:8x", NULL, "invalid port"},
    {"tcp://127.0.0.1:000080", NULL, "invalid port"},
    {"tcp://host", NULL, "no port"},
    {"tcp://a\nb:80", NULL, "characters"},
    {":5555", NULL, "no host"},
    {"tcp://[]:5555", NULL, "no host"},
    {"::1:5555", NULL, "brackets"},
    {"[::1]5555", NULL, "want [address]:port"},
    {"[::1", NULL, "want [address]:port"},
    {"--", NULL, "want unix://, tcp://, path, or host:port"},
};

TEST(forms)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct zc_address a;
        char why[ZC_ADDRESS_WHY_MAX] = "", text[ZC_ADDRESS_TEXT_MAX];
        int r = zc_address_parse(cases[i].text, &a, why);
        bool ok = r == (cases[i].why == NULL ? 0 : ZC_EINVAL);
        if (ok && r == 0) {
            zc_address_text(&a, text);
            ok = strcmp(text, cases[i].canonical) == 0;
        } else if (ok) {
            ok = strstr(why, cases[i].why) != NULL;
        }
        if (!ok)
            printf("%s: %d %s\n", cases[i].text, r, why);
        CHECK(ok);
    }
}

/* A canonical text parses to itself. */
TEST(canonical_is_stable)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct zc_address a;
        char why[ZC_ADDRESS_WHY_MAX], text[ZC_ADDRESS_TEXT_MAX];
        if (cases[i].canonical == NULL)
            continue;
        CHECK_INT(zc_address_parse(cases[i].canonical, &a, why), 0);
        zc_address_text(&a, text);
        CHECK(strcmp(text, cases[i].canonical) == 0);
    }
}

TEST(path_length)
{
    char path[256], why[ZC_ADDRESS_WHY_MAX], text[ZC_ADDRESS_TEXT_MAX];
    struct zc_address a;
    memset(path, 'x', sizeof(path));
    path[0] = '/';
    path[107] = '\0';
    CHECK_INT(zc_address_parse(path, &a, why), 0);
    CHECK_INT(strlen(a.path), 107);
    zc_address_text(&a, text);
    CHECK_INT(strlen(text), 114);
    path[107] = 'x';
    for (size_t len = 108; len < sizeof(path); len += 92) {
        char want[32];
        char saved = path[len];
        path[len] = '\0';
        snprintf(want, sizeof(want), "%zu bytes", len);
        CHECK_INT(zc_address_parse(path, &a, why), ZC_EINVAL);
        CHECK(strstr(why, want) != NULL);
        path[len] = saved;
    }
}

TEST(host_length)
{
    char text[400], why[ZC_ADDRESS_WHY_MAX];
    struct zc_address a;
    memset(text, 'h', sizeof(text));
    memcpy(text + 253, ":80", 4);
    CHECK_INT(zc_address_parse(text, &a, why), 0);
    CHECK_INT(strlen(a.host), 253);
    memset(text, 'h', sizeof(text));
    memcpy(text + 254, ":80", 4);
    CHECK_INT(zc_address_parse(text, &a, why), ZC_EINVAL);
}
