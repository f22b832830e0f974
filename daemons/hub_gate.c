/* The allow list at work; see hub_gate.h. */
#include "hub_gate.h"

#include <inttypes.h>
#include <stdio.h>

#include "host/host.h"
#include "identity.h"
#include "tunnel/tunnel.h"

/* Where revoked keys are kept: with the state, else beside the key file, else nowhere. */
static void revoked_path(const char *key_path, char ret_path[PATH_MAX])
{
    if (zc_identity_state_path("revoked", ret_path))
        return;
    int n = snprintf(ret_path, PATH_MAX, "%s.revoked", key_path);
    if (key_path[0] == '\0' || n >= PATH_MAX)
        ret_path[0] = '\0';
}

static void warn(struct zc_hub_gate *g)
{
    const char *warning = zc_hub_allow_warning(&g->allow);
    if (warning != NULL)
        zc_logsink_line(g->log, ZC_LOGSINK_WARNING, "%s", warning);
}

int zc_hub_gate_open(struct zc_hub_gate *g, const struct zc_hub_options *o, struct zc_logsink *log,
                     const char *key_path)
{
    char path[PATH_MAX], why[ZC_HUB_ALLOW_WHY_MAX];
    g->log = log;
    revoked_path(key_path, path);
    zc_hub_allow_init(&g->allow, o, path);
    int err = zc_hub_allow_load(&g->allow, why);
    if (err == 0) {
        warn(g);
        return 0;
    }
    zc_logsink_line(g->log, ZC_LOGSINK_ERR, "%s", why);
    return err == ZC_ENOMEM || err == ZC_EIO || err == ZC_EMFILE ? 1 : ZC_OPTIONS_CONFIG;
}

/* Whoever is not on the list any more is out. */
static int use(struct zc_hub_gate *g, struct zc_host *h)
{
    return zc_tunnel_set_allow(zc_hub_tunnel(h->config.hub), zc_host_now(h),
                               zc_hub_allow_on(&g->allow), g->allow.in.keys,
                               (uint32_t)g->allow.in.count);
}

void zc_hub_gate_reload(struct zc_hub_gate *g, struct zc_host *h)
{
    char why[ZC_HUB_ALLOW_WHY_MAX];
    int err = zc_hub_allow_load(&g->allow, why);
    if (err == 0 && (err = use(g, h)) != 0)
        snprintf(why, sizeof(why), "--allow: out of memory");
    if (err != 0)
        zc_logsink_line(g->log, ZC_LOGSINK_ERR, "%s: the lists from before stay", why);
    else if (zc_hub_allow_on(&g->allow))
        zc_logsink_line(g->log, ZC_LOGSINK_NOTICE, "the lists are read again: %zu key%s allowed",
                        g->allow.in.count, g->allow.in.count == 1 ? "" : "s");
    if (err == 0)
        warn(g);
    zc_hub_reloaded(h->config.hub, zc_host_now(h), err != 0 ? why : NULL);
}

void zc_hub_gate_revoke(struct zc_hub_gate *g, struct zc_host *h, const struct zc_key *key)
{
    static const char only_now[] = "it holds until the next start only: there is neither a "
                                   "--key-file nor a STATE_DIRECTORY beside which it could be kept";
    char name[ZC_SECRET_TEXT_MAX], why[ZC_HUB_ALLOW_WHY_MAX], text[ZC_HUB_ALLOW_WHY_MAX + 64] = "";
    bool stored = false;
    int err = zc_hub_allow_revoke(&g->allow, key, &stored, why);
    if (use(g, h) != 0 || err == ZC_ENOMEM)
        snprintf(text, sizeof(text), "out of memory: try again");
    else if (err != 0)
        snprintf(text, sizeof(text), "the key is shut out, but until the next start only: %s", why);
    zc_secret_encode(ZC_SECRET_NODE_KEY, key->b, name);
    if (text[0] != '\0')
        zc_logsink_line(g->log, ZC_LOGSINK_ERR, "revoke %s: %s", name, text);
    else if (!stored)
        zc_logsink_line(g->log, ZC_LOGSINK_WARNING, "%s is revoked: %s", name, only_now);
    else
        zc_logsink_line(g->log, ZC_LOGSINK_NOTICE, "%s is revoked", name);
    zc_hub_revoked(h->config.hub, zc_host_now(h), text[0] != '\0' ? text : NULL,
                   stored ? NULL : only_now);
}

void zc_hub_gate_refused(struct zc_hub_gate *g, const struct zc_key *key)
{
    char name[ZC_SECRET_TEXT_MAX];
    zc_secret_encode(ZC_SECRET_NODE_KEY, key->b, name);
    if (zc_hub_allow_is_revoked(&g->allow, key))
        zc_logsink_line(g->log, ZC_LOGSINK_NOTICE, "%s is revoked and asks to come in", name);
    else if (!zc_hub_allow_on(&g->allow) || zc_hub_keys_has(&g->allow.in, key))
        zc_logsink_line(g->log, ZC_LOGSINK_WARNING,
                        "%s asks to come in, and there is no room: a larger --clients-max (now "
                        "%" PRIu64 ") lets it in if it is one of yours",
                        name, g->allow.o->clients_max);
    else
        zc_logsink_line(g->log, ZC_LOGSINK_NOTICE,
                        "%s is not on the allow list: add it to %s if it is one of yours", name,
                        g->allow.o->allow_file != NULL ? "the --allow-file and `zmqcat reload`"
                                                       : "--allow");
}

void zc_hub_gate_done(struct zc_hub_gate *g)
{
    zc_hub_allow_done(&g->allow);
}
