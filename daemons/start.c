/* What the starts of the daemons have in common; see start.h. */
#include "start.h"

#include <limits.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

#include "host/limits.h"
#include "host/service.h"
#include "identity.h"

int zc_start_process(struct zc_logsink *log)
{
    int files_max = zc_limits_apply();
    zc_logsink_init(log, STDERR_FILENO, ZC_LOGSINK_INFO, zc_service_owns_log());
    return files_max;
}

int zc_start_options(const struct zc_options *o, int files_max)
{
    const char *lacking = zc_limits_lacking(files_max);
    o->log->level = o->log_level;
    if (lacking != NULL) {
        zc_logsink_line(o->log, ZC_LOGSINK_ERR, "cannot start: %s", lacking);
        return ZC_OPTIONS_CONFIG;
    }
    zc_limits_hold_signals(true);
    return 0;
}

int zc_start_seed(struct zc_logsink *log, uint8_t ret_seed[32])
{
    if (getentropy(ret_seed, 32) == 0)
        return 0;
    zc_logsink_line(log, ZC_LOGSINK_ERR, "the system gives no random bytes");
    return 1;
}

int zc_start_no_memory(struct zc_logsink *log)
{
    zc_logsink_line(log, ZC_LOGSINK_ERR, "out of memory at the start");
    return 1;
}

int zc_start_loop(struct zc_host *h, const struct zc_host_config *config)
{
    if (zc_host_init(h, config) == 0)
        return 0;
    zc_logsink_line(config->log, ZC_LOGSINK_ERR,
                    "cannot start the event loop: out of memory or of file descriptors");
    return 1;
}

void zc_start_relays(struct zc_host *h, const struct zc_options *o, bool server, int64_t region,
                     zc_relaymap_done_fn done, void *arg)
{
    char store[PATH_MAX];
    struct zc_relaymap_config config = {
        .source = o->derp_map != NULL ? o->derp_map : ZC_RELAYMAP_URL,
        .store = zc_identity_map_path(store) ? store : NULL,
        .server = server,
        .region = region,
    };
    if (zc_relaymap_start(h, &config, done, arg) != 0)
        zc_logsink_line(o->log, ZC_LOGSINK_ERR, "no tunnel: out of memory");
}

void zc_start_map_says(struct zc_host *h, const struct zc_relaymap_result *r)
{
    char text[sizeof(r->why) + 32];
    if (r->why[0] == '\0')
        return;
    snprintf(text, sizeof(text), "%s%s", r->why, r->err != 0 ? ": trying again" : "");
    zc_hub_say_warning(h->config.hub, zc_host_now(h), text);
}
