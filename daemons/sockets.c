/* The daemons' listening sockets; see sockets.h. */
#include "sockets.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "host/service.h"

/* Names the address in a complaint, escaped. */
static void complain(const struct zc_options *o, const char *what, const struct zc_address *a,
                     const char *why)
{
    char text[ZC_ADDRESS_TEXT_MAX], escaped[2 * ZC_ADDRESS_TEXT_MAX];
    zc_address_text(a, text);
    zc_text_escape(escaped, sizeof(escaped), zc_slice_str(text));
    zc_logsink_line(o->log, ZC_LOGSINK_ERR, "%s %s: %s", what, escaped, why);
}

/* Opens one address. 0 or the exit code. */
static int open_listen(struct zc_sockets *s, const struct zc_options *o, const char *option,
                       const struct zc_address *a, bool control)
{
    static const struct zc_unixsock_options private = {.mode = 0600};
    char why[ZC_LISTEN_WHY_MAX];
    struct zc_listen *l = &s->listens[s->count];
    int r = zc_listen_open(a, control ? &private : &o->socket, l, why);
    if (r < 0) {
        complain(o, option, a, why);
        return r == ZC_EBUSY || r == ZC_EMFILE ? 1 : ZC_OPTIONS_CONFIG;
    }
    l->control = control;
    s->count++;
    if (control && l->tcp)
        zc_logsink_line(o->log, ZC_LOGSINK_WARNING,
                        "the control socket is on TCP: whoever reaches that port may use it");
    return 0;
}

static int adopt(struct zc_sockets *s, const struct zc_options *o, bool *ret_bus, bool *ret_control)
{
    struct zc_service_sockets got;
    const char *why = "";
    if (zc_service_sockets(&got, &why) < 0) {
        zc_logsink_line(o->log, ZC_LOGSINK_ERR, "sockets of the service manager: %s", why);
        return ZC_OPTIONS_CONFIG;
    }
    for (size_t i = 0; i < got.count; i++) {
        struct zc_listen *l = &s->listens[s->count++];
        zc_listen_adopt(got.sockets[i].fd, l);
        l->control = got.sockets[i].control;
        *(l->control ? ret_control : ret_bus) = true;
    }
    return 0;
}

/* The control socket that nobody asked for by name. 0 or the exit code. */
static int open_default_control(struct zc_sockets *s, const struct zc_options *o,
                                bool inherited_bus)
{
    if (inherited_bus) {
        zc_logsink_line(o->log, ZC_LOGSINK_WARNING,
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
                o->log, ZC_LOGSINK_WARNING,
                "no control socket: the listen path plus .ctl is longer than 107 bytes: "
                "name one with --control");
            return 0;
        }
        memcpy(a.path + len, ".ctl", 5);
        return open_listen(s, o, "control socket", &a, true);
    }
    zc_logsink_line(o->log, ZC_LOGSINK_INFO,
                    "no control socket: the bus is on TCP only: name one with --control");
    return 0;
}

static int open_forwards(struct zc_sockets *s, const struct zc_options *o)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < o->forward_count; i++) {
        struct zc_address a = {.kind = ZC_ADDRESS_TCP, .port = o->forward[i].local};
        strcpy(a.host, "127.0.0.1");
        r = open_listen(s, o, "--forward", &a, false);
        if (r == 0)
            s->listens[s->count - 1].port = o->forward[i].remote;
    }
    return r;
}

int zc_sockets_open(struct zc_sockets *s, struct zc_options *o, bool forwards)
{
    bool bus = false, control = false;
    int r = adopt(s, o, &bus, &control);
    if (r == 0 && !bus && o->listen_count == 0) {
        o->listen[0].kind = ZC_ADDRESS_UNIX;
        snprintf(o->listen[0].path, sizeof(o->listen[0].path), "/tmp/zmqcat-%lu.sock",
                 (unsigned long)getuid());
        o->listen_count = 1;
    }
    for (size_t i = 0; r == 0 && i < o->listen_count; i++)
        r = open_listen(s, o, "--listen", &o->listen[i], false);
    if (r == 0 && forwards)
        r = open_forwards(s, o);
    if (r != 0)
        return r;
    if (o->has_control)
        return open_listen(s, o, "--control", &o->control, true);
    return control ? 0 : open_default_control(s, o, bus);
}

void zc_sockets_close(struct zc_sockets *s)
{
    for (size_t i = 0; i < s->count; i++)
        zc_listen_close(&s->listens[i]);
}
