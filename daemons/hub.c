/*
 * zmqcat-hub: owns the mailboxes and serves the bus. This file only puts the parts together:
 * options, sockets, the store's directory, the tunnel, the core and the loop around it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "host/clock.h"
#include "host/disk.h"
#include "host/host.h"
#include "host/import.h"
#include "host/rebuild.h"
#include "hub_options.h"
#include "hub_tunnel.h"
#include "node/hub.h"
#include "sockets.h"
#include "start.h"

/* Everything main owns. All zero is a state that done() takes. */
struct daemon {
    struct zc_logsink log;
    struct zc_hub_options options;
    struct zc_sockets sockets;
    struct zc_daemon_tunnel *tunnel; /* NULL: --local */
    struct zc_disk *disk;
    struct zc_hub *hub;
    struct zc_host host;
};

static bool unusable(int err)
{
    return err == ZC_EEXIST || err == ZC_EACCES || err == ZC_ENOENT || err == ZC_EINVAL ||
           err == ZC_EBADMSG;
}

/* The mailbox file of the Go program at the store's path becomes a log. 0 or the exit code. */
static int import_file(struct daemon *d, const char *shown)
{
    char why[ZC_WHY_MAX];
    int64_t count;
    int r = zc_import_start(d->options.mailbox, d->options.hub.log.segment_bytes, &count, why);
    if (r != 0) {
        zc_logsink_line(&d->log, ZC_LOGSINK_ERR, "--mailbox \"%s\": %s", shown, why);
        return unusable(r) ? ZC_OPTIONS_CONFIG : 1;
    }
    if (count >= 0)
        zc_logsink_line(&d->log, ZC_LOGSINK_NOTICE,
                        "imported %lld message%s of the mailbox file \"%s\", which is now "
                        "\"%s.imported\"",
                        (long long)count, count == 1 ? "" : "s", shown, shown);
    return 0;
}

/* Opens the store's directory when there is one. 0 or the exit code. */
static int open_store(struct daemon *d)
{
    struct zc_hub_options *o = &d->options;
    char why[ZC_WHY_MAX], escaped[300];
    if (o->mailbox == NULL)
        return 0;
    zc_text_escape(escaped, sizeof(escaped), zc_slice_str(o->mailbox));
    int code = import_file(d, escaped);
    if (code != 0)
        return code;
    int r =
        zc_disk_open(o->mailbox, &d->disk, &o->hub.log.segments, &o->hub.log.segments_count, why);
    if (r == 0) {
        zc_rebuild_unmark(o->mailbox); /* an import is through */
        o->hub.durable = true;
        o->hub.storage_path = o->mailbox;
        return 0;
    }
    zc_logsink_line(&d->log, ZC_LOGSINK_ERR, "--mailbox \"%s\": %s", escaped, why);
    return unusable(r) ? ZC_OPTIONS_CONFIG : 1;
}

/* Makes the hub; 0 or the exit code. */
static int make_hub(struct daemon *d)
{
    uint8_t seed[32];
    struct zc_hub_tunnel_config tunnel;
    int r = zc_start_seed(&d->log, seed);
    if (r != 0)
        return r;
    d->options.hub.version = ZC_VERSION;
    if (d->tunnel != NULL) {
        zc_daemon_tunnel_config(d->tunnel, &tunnel);
        d->options.hub.tunnel = &tunnel;
    }
    d->hub = zc_hub_new(&d->options.hub, seed, zc_clock_now());
    zc_secret_wipe(seed, sizeof(seed));
    return d->hub != NULL ? 0 : zc_start_no_memory(&d->log);
}

static void on_event(void *arg, struct zc_host *h, const struct zc_hub_event *e)
{
    struct daemon *d = arg;
    if (d->tunnel != NULL)
        zc_daemon_tunnel_event(d->tunnel, h, e);
}

static int run(struct daemon *d, int files_max)
{
    const char *name = d->options.shared.name;
    struct zc_host_config config = {
        .hub = d->hub,
        .disk = d->disk,
        .log = &d->log,
        .listens = d->sockets.listens,
        .listens_count = d->sockets.count,
        .files_max = files_max,
        .name = name[0] != '\0' ? name : NULL,
        .tunnel = d->tunnel != NULL,
        .on_event = on_event,
        .arg = d,
    };
    int code = zc_start_loop(&d->host, &config);
    if (code == 0)
        code = zc_host_run(&d->host);
    if (d->tunnel != NULL)
        zc_daemon_tunnel_end(d->tunnel, d->hub);
    zc_host_done(&d->host);
    return code;
}

static void done(struct daemon *d)
{
    zc_sockets_close(&d->sockets);
    if (d->hub != NULL)
        zc_hub_free(d->hub);
    if (d->disk != NULL)
        zc_disk_close(d->disk);
    zc_daemon_tunnel_free(d->tunnel);
    zc_hub_options_done(&d->options);
}

int main(int argc, char **argv)
{
    static struct daemon d;
    int files_max = zc_start_process(&d.log);
    int code = zc_hub_options_parse(argc, argv, &d.log, &d.options);
    if (code != ZC_OPTIONS_RUN) {
        zc_hub_options_done(&d.options);
        return code;
    }
    code = zc_start_options(&d.options.shared, files_max);
    if (code == 0 && !d.options.local)
        code = zc_daemon_tunnel_new(&d.options, &d.log, &d.tunnel);
    if (code == 0)
        code = open_store(&d);
    if (code == 0)
        code = zc_sockets_open(&d.sockets, &d.options.shared, false);
    if (code == 0)
        code = make_hub(&d);
    if (code == 0)
        code = run(&d, files_max);
    done(&d);
    if (d.host.stuck)
        _exit(code);
    return code;
}
