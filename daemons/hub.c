/*
 * zmqcat-hub: owns the mailboxes and serves the bus. This file only puts the parts together:
 * options, sockets, the store's directory, the core and the loop around it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/text.h"
#include "host/clock.h"
#include "host/disk.h"
#include "host/host.h"
#include "host/limits.h"
#include "host/service.h"
#include "hub_options.h"
#include "node/hub.h"

#define EXIT_CONFIG 78

/* Everything main owns. All zero is a state that done() takes. */
struct daemon {
    struct zc_logsink log;
    struct zc_hub_options options;
    struct zc_listen listens[ZC_HOST_LISTEN_MAX];
    size_t listens_count;
    struct zc_disk *disk;
    struct zc_hub *hub;
    struct zc_host host;
};

/* Names the address in a complaint, escaped. */
static void complain(struct daemon *d, const char *what, const struct zc_address *a,
                     const char *why)
{
    char text[ZC_ADDRESS_TEXT_MAX], escaped[2 * ZC_ADDRESS_TEXT_MAX];
    zc_address_text(a, text);
    zc_text_escape(escaped, sizeof(escaped), zc_slice_str(text));
    zc_logsink_line(&d->log, ZC_LOGSINK_ERR, "%s %s: %s", what, escaped, why);
}

/* Opens one address. 0 or the exit code. */
static int open_listen(struct daemon *d, const char *option, const struct zc_address *a,
                       bool control)
{
    static const struct zc_unixsock_options private = {.mode = 0600};
    char why[ZC_LISTEN_WHY_MAX];
    struct zc_listen *l = &d->listens[d->listens_count];
    int r = zc_listen_open(a, control ? &private : &d->options.socket, l, why);
    if (r < 0) {
        complain(d, option, a, why);
        return r == ZC_EBUSY || r == ZC_EMFILE ? 1 : EXIT_CONFIG;
    }
    l->control = control;
    d->listens_count++;
    if (control && l->tcp)
        zc_logsink_line(&d->log, ZC_LOGSINK_WARNING,
                        "the control socket is on TCP: whoever reaches that port may use it");
    return 0;
}

static int adopt_sockets(struct daemon *d, bool *ret_bus, bool *ret_control)
{
    struct zc_service_sockets got;
    const char *why = "";
    if (zc_service_sockets(&got, &why) < 0) {
        zc_logsink_line(&d->log, ZC_LOGSINK_ERR, "sockets of the service manager: %s", why);
        return EXIT_CONFIG;
    }
    for (size_t i = 0; i < got.count; i++) {
        struct zc_listen *l = &d->listens[d->listens_count++];
        zc_listen_adopt(got.sockets[i].fd, l);
        l->control = got.sockets[i].control;
        *(l->control ? ret_control : ret_bus) = true;
    }
    return 0;
}

/* The control socket that nobody asked for by name. 0 or the exit code. */
static int open_default_control(struct daemon *d, bool inherited_bus)
{
    const struct zc_hub_options *o = &d->options;
    if (inherited_bus) {
        zc_logsink_line(&d->log, ZC_LOGSINK_WARNING,
                        "no control socket: the service manager handed over none named `control`: "
                        "add one, or --control");
        return 0;
    }
    for (size_t i = 0; i < o->listen_count; i++) {
        struct zc_address a = o->listen[i];
        if (a.kind != ZC_ADDRESS_UNIX)
            continue;
        size_t len = strlen(a.path);
        if (len + 4 > ZC_ADDRESS_PATH_MAX) {
            zc_logsink_line(
                &d->log, ZC_LOGSINK_WARNING,
                "no control socket: the listen path plus .ctl is longer than 107 bytes: "
                "name one with --control");
            return 0;
        }
        memcpy(a.path + len, ".ctl", 5);
        return open_listen(d, "control socket", &a, true);
    }
    zc_logsink_line(&d->log, ZC_LOGSINK_INFO,
                    "no control socket: the bus is on TCP only: name one with --control");
    return 0;
}

/* All listening sockets, inherited and our own. 0 or the exit code. */
static int open_sockets(struct daemon *d)
{
    struct zc_hub_options *o = &d->options;
    bool bus = false, control = false;
    int r = adopt_sockets(d, &bus, &control);
    if (r == 0 && !bus && o->listen_count == 0) {
        o->listen[0].kind = ZC_ADDRESS_UNIX;
        snprintf(o->listen[0].path, sizeof(o->listen[0].path), "/tmp/zmqcat-%lu.sock",
                 (unsigned long)getuid());
        o->listen_count = 1;
    }
    for (size_t i = 0; r == 0 && i < o->listen_count; i++)
        r = open_listen(d, "--listen", &o->listen[i], false);
    if (r != 0)
        return r;
    if (o->has_control)
        return open_listen(d, "--control", &o->control, true);
    return control ? 0 : open_default_control(d, bus);
}

/* Opens the store's directory when there is one. 0 or the exit code. */
static int open_store(struct daemon *d)
{
    struct zc_hub_options *o = &d->options;
    char why[ZC_DISK_WHY_MAX], escaped[300];
    if (o->mailbox == NULL)
        return 0;
    int r =
        zc_disk_open(o->mailbox, &d->disk, &o->hub.log.segments, &o->hub.log.segments_count, why);
    if (r == 0) {
        o->hub.durable = true;
        o->hub.storage_path = o->mailbox;
        return 0;
    }
    zc_text_escape(escaped, sizeof(escaped), zc_slice_str(o->mailbox));
    zc_logsink_line(&d->log, ZC_LOGSINK_ERR, "--mailbox \"%s\": %s", escaped, why);
    bool unusable = r == ZC_EEXIST || r == ZC_EACCES || r == ZC_ENOENT || r == ZC_EINVAL;
    return unusable ? EXIT_CONFIG : 1;
}

static int run(struct daemon *d, int files_max)
{
    uint8_t seed[32];
    if (getentropy(seed, sizeof(seed)) < 0) {
        zc_logsink_line(&d->log, ZC_LOGSINK_ERR, "the system gives no random bytes");
        return 1;
    }
    d->options.hub.version = ZC_VERSION;
    d->hub = zc_hub_new(&d->options.hub, seed, zc_clock_now());
    if (d->hub == NULL) {
        zc_logsink_line(&d->log, ZC_LOGSINK_ERR, "out of memory at the start");
        return 1;
    }
    struct zc_host_config config = {
        .hub = d->hub,
        .disk = d->disk,
        .log = &d->log,
        .listens = d->listens,
        .listens_count = d->listens_count,
        .files_max = files_max,
        .name = d->options.name[0] != '\0' ? d->options.name : NULL,
    };
    int code = 1;
    if (zc_host_init(&d->host, &config) == 0)
        code = zc_host_run(&d->host);
    else
        zc_logsink_line(&d->log, ZC_LOGSINK_ERR,
                        "cannot start the event loop: out of memory or of file descriptors");
    zc_host_done(&d->host);
    return code;
}

static void done(struct daemon *d)
{
    for (size_t i = 0; i < d->listens_count; i++)
        zc_listen_close(&d->listens[i]);
    if (d->hub != NULL)
        zc_hub_free(d->hub);
    if (d->disk != NULL)
        zc_disk_close(d->disk);
}

int main(int argc, char **argv)
{
    static struct daemon d;
    int files_max = zc_limits_apply();
    bool journal = zc_service_owns_log();
    zc_logsink_init(&d.log, STDERR_FILENO, ZC_LOGSINK_INFO, journal);
    int code = zc_hub_options_parse(argc, argv, &d.log, &d.options);
    if (code != ZC_HUB_OPTIONS_RUN)
        return code;
    d.log.level = d.options.log_level;
    zc_limits_hold_signals(true); /* until the loop takes them */
    code = open_store(&d);
    if (code == 0)
        code = open_sockets(&d);
    if (code == 0)
        code = run(&d, files_max);
    done(&d);
    return code;
}
