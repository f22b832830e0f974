/*
 * zmqcat-spoke: joins a hub through the tunnel, so that the bus at its local socket is the hub's.
 * This file only puts the parts together: options, token, keys, sockets, the core and its loop.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/text.h"
#include "credential.h"
#include "host/clock.h"
#include "host/host.h"
#include "host/relay.h"
#include "host/relaymap.h"
#include "identity.h"
#include "node/spoke.h"
#include "region.h"
#include "sockets.h"
#include "spoke_options.h"
#include "spoke_token.h"
#include "stampfile.h"
#include "start.h"

#define TOKEN_POLL_MS 1000

/* Everything main owns. All zero is a state that done() takes. */
struct daemon {
    struct zc_logsink log;
    struct zc_spoke_options options;
    struct zc_sockets sockets;
    struct zc_spoke_token source;
    struct zc_token token; /* the last good one */
    bool has_token;
    bool bad_once; /* a late token was unusable a moment ago: it may be half written */
    bool joined_told;
    struct zc_keyfile keys;
    bool key_made;
    struct zc_stampfile stampfile;
    struct zc_stamps_bounds stamps;
    struct zc_hub *spoke;
    struct zc_host host;
    uv_timer_t poll; /* for a token that is late */
};

/* ---- the token ---- */

#define UNUSABLE                                                                                   \
    "it cannot be used: its keys are no keys of a hub, or --key-file is that of the hub itself"

static void refuse_token(struct daemon *d, const char *why)
{
    zc_logsink_line(&d->log, ZC_LOGSINK_ERR, "%s: %s", d->source.shown, why);
}

static bool join(struct daemon *d, const struct zc_derpmap_node *relays, uint32_t count)
{
    struct zc_spoke_target target = {
        .node_key = d->token.node_key,
        .disco_key = d->token.disco_key,
        .psk = d->token.has_psk ? &d->token.psk : NULL,
        .relays = relays,
        .relays_count = count < ZC_TUNNEL_RELAYS_MAX ? count : ZC_TUNNEL_RELAYS_MAX,
        .region_id = zc_region_short_id(d->token.region_id),
    };
    if (zc_spoke_join(d->spoke, zc_host_now(&d->host), &target) != 0) {
        d->source.fingerprint[0] = '\0'; /* it may be tried again */
        return false;
    }
    zc_relay_reset(d->host.relay); /* the stream was that of the hub before */
    return true;
}

static void on_relays(void *arg, const struct zc_relaymap_result *r)
{
    struct daemon *d = arg;
    zc_start_map_says(&d->host, r);
    if (r->err == 0 && !join(d, r->relays, r->count))
        refuse_token(d, UNUSABLE);
}

/* The token is good: use it, and the start is over. False: it was not that good. */
static bool use_token(struct daemon *d)
{
    const struct zc_derpmap_region *r = &d->token.regions[0];
    bool used = true;
    zc_logsink_line(&d->log, ZC_LOGSINK_INFO, "token %s: joining", d->source.fingerprint);
    zc_relaymap_free(d->host.map);
    if (d->token.regions_count > 0)
        used = join(d, &d->token.nodes[r->nodes_first], r->nodes_count);
    else /* it names a region's number only */
        zc_start_relays(&d->host, &d->options.shared, false, d->token.region_id, on_relays, d);
    zc_host_ready(&d->host);
    return used;
}

/* Without one that can be used the spoke waits for a better one. */
static void use_first(struct daemon *d)
{
    if (!use_token(d))
        refuse_token(d, UNUSABLE);
}

/* Reads the token into d->token. 0, or what zc_spoke_token_read says. */
static int read_token(struct daemon *d, bool *ret_changed, char why[ZC_TOKEN_WHY_MAX + 64])
{
    static struct zc_token fresh; /* 24 KiB */
    int err = zc_spoke_token_read(&d->source, &fresh, ret_changed, why);
    if (err != 0)
        return err;
    zc_token_done(&d->token);
    d->token = fresh;
    d->has_token = true;
    zc_token_done(&fresh);
    return 0;
}

static void on_poll(uv_timer_t *timer)
{
    struct daemon *d = ZC_CONTAINER(timer, struct daemon, poll);
    char why[ZC_TOKEN_WHY_MAX + 64];
    bool changed;
    int err = read_token(d, &changed, why);
    if (err == ZC_ENOENT)
        return;
    if (err != 0 && !d->bad_once) { /* its writer may not be done */
        d->bad_once = true;
        return;
    }
    uv_timer_stop(timer);
    if (err == 0) {
        use_first(d);
        return;
    }
    refuse_token(d, why);
    zc_host_end(&d->host, ZC_OPTIONS_CONFIG);
}

static void start(struct daemon *d)
{
    if (d->has_token)
        use_first(d);
    else
        uv_timer_start(&d->poll, on_poll, TOKEN_POLL_MS, TOKEN_POLL_MS);
}

/* Reads the token again; what came of it, NULL: all is well. */
static const char *read_again(struct daemon *d, char why[ZC_TOKEN_WHY_MAX + 64])
{
    bool changed = false;
    if (!d->source.file)
        return "it does not change while the spoke runs: restart that for another one";
    if (!d->has_token)
        return "it is not there yet, and is used as soon as it is";
    if (read_token(d, &changed, why) != 0)
        return why;
    return !changed || use_token(d) ? NULL : UNUSABLE;
}

static void reload(struct daemon *d)
{
    char why[ZC_TOKEN_WHY_MAX + 64], text[PATH_MAX + ZC_TOKEN_WHY_MAX + 128];
    const char *wrong = read_again(d, why);
    if (wrong != NULL) {
        snprintf(text, sizeof(text), "%s: %s", d->source.shown, wrong);
        zc_logsink_line(&d->log, ZC_LOGSINK_ERR, "%s", text);
    }
    if (wrong != NULL && d->source.file && d->has_token)
        zc_logsink_line(&d->log, ZC_LOGSINK_ERR, "the token from before stays");
    zc_hub_reloaded(d->spoke, zc_host_now(&d->host), wrong != NULL ? text : NULL);
}

/* The first token; one that is late is waited for. 0 or the exit code. */
static int first_token(struct daemon *d)
{
    char why[ZC_TOKEN_WHY_MAX + 64];
    bool changed;
    /* A credential that is there later is met by starting again. */
    if (!d->source.file && zc_credential_missing(&zc_credential_token, d->source.path, &d->log))
        return 1;
    int err = read_token(d, &changed, why);
    if (err == 0)
        return 0;
    if (err == ZC_ENOENT && d->source.file) {
        zc_logsink_line(&d->log, ZC_LOGSINK_WARNING, "%s: it does not exist yet: waiting for it",
                        d->source.shown);
        return 0;
    }
    if (err != ZC_ENOENT) {
        refuse_token(d, why);
        return ZC_OPTIONS_CONFIG;
    }
    zc_credential_say_missing(&zc_credential_token, "", &d->log);
    return 1;
}

/* ---- the process ---- */

/* The original's line, which scripts wait for. */
static void say_joined(struct daemon *d)
{
    char text[ZC_ADDRESS_TEXT_MAX], escaped[2 * ZC_ADDRESS_TEXT_MAX];
    char line[2 * ZC_ADDRESS_TEXT_MAX + 32];
    if (d->joined_told || d->log.level < ZC_LOGSINK_INFO)
        return;
    d->joined_told = true;
    for (size_t i = 0; i < d->sockets.count; i++) {
        const struct zc_listen *l = &d->sockets.listens[i];
        if (l->control || l->port > 0)
            continue;
        zc_address_text(&l->address, text);
        zc_text_escape(escaped, sizeof(escaped), zc_slice_str(text));
        snprintf(line, sizeof(line), "joined; local %s", escaped);
        zc_logsink_raw(&d->log, ZC_LOGSINK_INFO, line);
    }
}

static void on_event(void *arg, struct zc_host *h, const struct zc_hub_event *e)
{
    struct daemon *d = arg;
    (void)h;
    if (e->kind == ZC_HUB_READY)
        start(d);
    else if (e->kind == ZC_HUB_ONLINE)
        say_joined(d);
    else if (e->kind == ZC_HUB_RELOAD)
        reload(d);
    else if (e->kind == ZC_HUB_STAMPS)
        zc_stampfile_save(&d->stampfile, zc_hub_tunnel(d->spoke), e->most);
}

/* Makes the core; 0 or the exit code. */
static int make_spoke(struct daemon *d)
{
    uint8_t seed[32];
    struct zc_spoke_config config;
    int r = zc_start_seed(&d->log, seed);
    if (r != 0)
        return r;
    zc_spoke_config_default(&config);
    config.private_key = &d->keys.private_key;
    config.wait_hub_ms = d->options.wait_hub_ms;
    config.trace = d->options.shared.trace;
    config.stamps = d->stamps;
    d->spoke = zc_spoke_new(&config, seed, zc_clock_now());
    zc_secret_wipe(seed, sizeof(seed));
    return d->spoke != NULL ? 0 : zc_start_no_memory(&d->log);
}

static int run(struct daemon *d, int files_max)
{
    const char *name = d->options.shared.name;
    struct zc_host_config config = {
        .hub = d->spoke,
        .log = &d->log,
        .listens = d->sockets.listens,
        .listens_count = d->sockets.count,
        .files_max = files_max,
        .name = name[0] != '\0' ? name : NULL,
        .spoke = true,
        .tunnel = true,
        .on_event = on_event,
        .arg = d,
    };
    int code = zc_start_loop(&d->host, &config);
    if (code == 0) {
        uv_timer_init(&d->host.loop, &d->poll);
        code = zc_host_run(&d->host);
        zc_stampfile_close(&d->stampfile, zc_hub_tunnel(d->spoke));
    }
    zc_host_done(&d->host);
    return code;
}

static int open_all(struct daemon *d)
{
    char key_path[PATH_MAX];
    int r = zc_identity_open(&d->options.shared, "spoke.key", ZC_KEYFILE_SPOKE, &d->keys, key_path,
                             &d->key_made);
    if (r == 0)
        r = zc_spoke_token_init(&d->source, &d->options);
    if (r == 0)
        r = first_token(d);
    if (r == 0)
        r = zc_sockets_open(&d->sockets, &d->options.shared, true);
    if (r == 0)
        zc_stampfile_open(&d->stampfile, &d->log, key_path, "spoke.key", d->key_made, &d->stamps);
    return r != 0 ? r : make_spoke(d);
}

static void done(struct daemon *d)
{
    zc_sockets_close(&d->sockets);
    if (d->spoke != NULL)
        zc_hub_free(d->spoke);
    zc_keyfile_done(&d->keys);
    zc_token_done(&d->token);
    zc_spoke_token_done(&d->source);
}

int main(int argc, char **argv)
{
    static struct daemon d;
    int files_max = zc_start_process(&d.log);
    int code = zc_spoke_options_parse(argc, argv, &d.log, &d.options);
    if (code != ZC_OPTIONS_RUN)
        return code;
    code = zc_start_options(&d.options.shared, files_max);
    if (code == 0)
        code = open_all(&d);
    if (code == 0)
        code = run(&d, files_max);
    done(&d);
    if (d.host.stuck)
        _exit(code);
    return code;
}
