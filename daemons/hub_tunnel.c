/* Keys, allow list, relays and token of zmqcat-hub; see hub_tunnel.h. */
#include "hub_tunnel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/text.h"
#include "host/secretfile.h"
#include "hub_gate.h"
#include "identity.h"
#include "region.h"
#include "stampfile.h"
#include "start.h"
#include "tunnel/token.h"
#include "tunnel/tunnel.h"

struct zc_daemon_tunnel {
    const struct zc_hub_options *o;
    struct zc_logsink *log;
    struct zc_host *host;
    struct zc_keyfile keys;
    char key_path[PATH_MAX]; /* "": fresh keys for this run */
    char token_path[PATH_MAX];
    bool key_made;
    struct zc_stampfile stampfile;
    bool print;
    bool choose_region; /* the map's choice is to be kept in the key file */
    struct zc_region region;
    struct zc_hub_gate gate;
    uint16_t forward[ZC_OPTIONS_FORWARD_MAX];
    char fingerprint[ZC_TOKEN_FINGERPRINT_MAX]; /* of the token that is out */
};

static void say(struct zc_daemon_tunnel *t, int level, const char *what, const char *path,
                const char *why)
{
    char escaped[400];
    zc_text_escape(escaped, sizeof(escaped), zc_slice_str(path));
    zc_logsink_line(t->log, level, "%s %s %s", what, escaped, why);
}

/* ---- start ---- */

/* A key file of an older tailcat has no pre-shared key: it gets one, unless none is wanted. */
static int complete_keys(struct zc_daemon_tunnel *t)
{
    struct zc_keyfile fresh;
    char why[ZC_KEYFILE_WHY_MAX];
    if (t->keys.has_psk || t->o->no_psk)
        return 0;
    zc_keyfile_generate(ZC_KEYFILE_HUB, &fresh);
    t->keys.psk = fresh.psk;
    t->keys.has_psk = true;
    zc_keyfile_done(&fresh);
    if (t->key_path[0] == '\0' || zc_keyfile_save(t->key_path, &t->keys, true, why) == 0)
        return 0;
    return zc_options_bad(&t->o->shared, "key-file", t->key_path, why);
}

/* Which relay: the option, else the key file, else the map's first. */
static int choose_region(struct zc_daemon_tunnel *t)
{
    const struct zc_keyfile *k = &t->keys;
    t->region.id = 0;
    if (t->o->region != NULL) {
        if (zc_region_parse(t->o->region, &t->region))
            return 0;
        return zc_options_bad(&t->o->shared, "region", t->o->region,
                              "want the number of a region of the map, or HOST[:PORT]");
    }
    if (k->region_kind == ZC_KEYFILE_REGION_FULL) {
        for (uint32_t i = 0; i < k->region.nodes_count && i < ZC_KEYFILE_NODES_MAX; i++)
            t->region.relays[t->region.count++] = k->nodes[i];
        t->region.id = k->region.id;
    } else if (k->region_kind == ZC_KEYFILE_REGION_ID && k->region_id > 0) {
        t->region.id = k->region_id;
    } else {
        t->choose_region = true;
    }
    return 0;
}

/* Whether both paths name one file, which is there. */
static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    return lstat(a, &x) == 0 && lstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static int open_files(struct zc_daemon_tunnel *t)
{
    const struct zc_options *o = &t->o->shared;
    int r = zc_identity_open(o, "hub.key", ZC_KEYFILE_HUB, &t->keys, t->key_path, &t->key_made);
    if (r != 0)
        return r;
    if (t->key_path[0] == '\0')
        zc_logsink_line(t->log, ZC_LOGSINK_INFO,
                        "no --key-file: the token is another one after each start");
    r = complete_keys(t);
    if (r == 0)
        r = choose_region(t);
    if (r == 0)
        r = zc_hub_gate_open(&t->gate, t->o, t->log, t->key_path);
    if (r != 0)
        return r;
    if (t->o->token_out != NULL && strlen(t->o->token_out) >= PATH_MAX)
        return zc_options_bad(o, "token-out", t->o->token_out, "the path is too long");
    if (t->o->token_out != NULL)
        strcpy(t->token_path, t->o->token_out);
    else if (!zc_identity_state_path("token", t->token_path))
        t->token_path[0] = '\0';
    if (same_file(t->token_path, t->key_path))
        return zc_options_bad(o, "token-out", t->token_path,
                              "that is the key file: name another one for the token");
    t->print = t->o->print_token || isatty(STDOUT_FILENO);
    for (size_t i = 0; i < o->forward_count; i++)
        t->forward[i] = o->forward[i].remote;
    return 0;
}

int zc_daemon_tunnel_new(const struct zc_hub_options *options, struct zc_logsink *log,
                         struct zc_daemon_tunnel **ret_tunnel)
{
    struct zc_daemon_tunnel *t = calloc(1, sizeof(*t));
    if (t == NULL)
        return zc_start_no_memory(log);
    t->o = options;
    t->log = log;
    int r = open_files(t);
    if (r != 0)
        zc_daemon_tunnel_free(t);
    else
        *ret_tunnel = t;
    return r;
}

void zc_daemon_tunnel_end(struct zc_daemon_tunnel *t, struct zc_hub *hub)
{
    zc_stampfile_close(&t->stampfile, zc_hub_tunnel(hub));
}

void zc_daemon_tunnel_free(struct zc_daemon_tunnel *t)
{
    if (t == NULL)
        return;
    zc_keyfile_done(&t->keys);
    zc_hub_gate_done(&t->gate);
    free(t);
}

void zc_daemon_tunnel_config(struct zc_daemon_tunnel *t, struct zc_hub_tunnel_config *ret_config)
{
    struct zc_stamps_bounds stamps;
    zc_stampfile_open(&t->stampfile, t->log, t->key_path, "hub.key", t->key_made, &stamps);
    *ret_config = (struct zc_hub_tunnel_config){
        .private_key = &t->keys.private_key,
        .psk = t->o->no_psk ? NULL : &t->keys.psk,
        .relays = t->region.relays,
        .relays_count = t->region.count,
        .region_id = zc_region_short_id(t->region.id),
        .allow_on = zc_hub_allow_on(&t->gate.allow),
        .allow = t->gate.allow.in.keys,
        .allow_count = (uint32_t)t->gate.allow.in.count,
        .forward = t->forward,
        .forward_count = (uint32_t)t->o->shared.forward_count,
        .clients_max = (uint32_t)t->o->clients_max,
        .stamps = stamps,
    };
}

/* ---- relays ---- */

static void on_relays(void *arg, const struct zc_relaymap_result *r)
{
    struct zc_daemon_tunnel *t = arg;
    struct zc_tunnel *tunnel = zc_hub_tunnel(t->host->config.hub);
    zc_start_map_says(t->host, r);
    if (r->err != 0)
        return;
    t->region.id = r->region_id;
    if (zc_tunnel_set_relays(tunnel, zc_host_now(t->host), r->relays, r->count,
                             zc_region_short_id(r->region_id)) != 0)
        zc_logsink_line(t->log, ZC_LOGSINK_ERR, "the relays of the map cannot be used");
}

/* The region that was chosen stays, so that the token does. */
static void keep_region(struct zc_daemon_tunnel *t)
{
    char why[ZC_KEYFILE_WHY_MAX];
    if (!t->choose_region || t->region.id <= 0)
        return;
    t->choose_region = false;
    t->keys.region_kind = ZC_KEYFILE_REGION_ID;
    t->keys.region_id = t->region.id;
    if (t->key_path[0] != '\0' && zc_keyfile_save(t->key_path, &t->keys, true, why) != 0)
        say(t, ZC_LOGSINK_WARNING, "--key-file", t->key_path, why);
}

/* ---- the token's way out ---- */

static void print_token(struct zc_daemon_tunnel *t, const char *token)
{
    if (printf("%s\n", token) < 0 || fflush(stdout) != 0)
        zc_logsink_line(t->log, ZC_LOGSINK_WARNING, "the token cannot be printed: %s",
                        strerror(errno));
}

static void write_token(struct zc_daemon_tunnel *t, const char *token)
{
    char line[ZC_HUB_TOKEN_MAX + 1], why[ZC_SECRETFILE_WHY_MAX];
    int n = snprintf(line, sizeof(line), "%s\n", token);
    int err = zc_secretfile_write(t->token_path, zc_slice(line, (size_t)n), why);
    zc_secret_wipe(line, sizeof(line));
    if (err != 0)
        say(t, ZC_LOGSINK_ERR, "--token-out", t->token_path, why);
    else
        say(t, ZC_LOGSINK_INFO, "token file", t->token_path, "is written");
}

static void token_out(struct zc_daemon_tunnel *t)
{
    char token[ZC_HUB_TOKEN_MAX], fingerprint[ZC_TOKEN_FINGERPRINT_MAX];
    if (zc_hub_token(t->host->config.hub, token) != 0)
        return;
    zc_token_fingerprint(zc_slice_str(token), fingerprint);
    if (strcmp(fingerprint, t->fingerprint) != 0) {
        strcpy(t->fingerprint, fingerprint);
        zc_logsink_line(t->log, ZC_LOGSINK_NOTICE, "token %s: spokes can join", fingerprint);
        if (t->token_path[0] != '\0')
            write_token(t, token);
        if (t->print)
            print_token(t, token);
    }
    zc_secret_wipe(token, sizeof(token));
}

/* ---- changes while it runs ---- */

static void save_psk(struct zc_daemon_tunnel *t, const struct zc_secret *psk)
{
    char why[ZC_KEYFILE_WHY_MAX];
    struct zc_keyfile with_new = t->keys;
    int err = 0;
    with_new.psk = *psk;
    if (t->key_path[0] != '\0')
        err = zc_keyfile_save(t->key_path, &with_new, true, why);
    else
        zc_logsink_line(t->log, ZC_LOGSINK_WARNING,
                        "no --key-file: the new token lasts until the next start");
    if (err == 0)
        t->keys.psk = *psk;
    zc_keyfile_done(&with_new);
    zc_hub_psk_saved(t->host->config.hub, zc_host_now(t->host), err != 0 ? why : NULL);
    if (err == 0)
        token_out(t);
}

void zc_daemon_tunnel_event(struct zc_daemon_tunnel *t, struct zc_host *h,
                            const struct zc_hub_event *e)
{
    t->host = h;
    switch (e->kind) {
    case ZC_HUB_READY:
        if (t->region.count == 0)
            zc_start_relays(h, &t->o->shared, true, t->region.id, on_relays, t);
        break;
    case ZC_HUB_ONLINE:
        keep_region(t);
        token_out(t);
        break;
    case ZC_HUB_PSK:
        save_psk(t, e->psk);
        break;
    case ZC_HUB_RELOAD:
        zc_hub_gate_reload(&t->gate, h);
        break;
    case ZC_HUB_REVOKE:
        zc_hub_gate_revoke(&t->gate, h, &e->key);
        break;
    case ZC_HUB_REFUSED:
        zc_hub_gate_refused(&t->gate, &e->key);
        break;
    case ZC_HUB_STAMPS:
        zc_stampfile_save(&t->stampfile, zc_hub_tunnel(h->config.hub), e->most);
        break;
    default:
        break;
    }
}
