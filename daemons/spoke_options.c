/* Options of zmqcat-spoke; the ones that it shares with the other daemons are in options.c. */
#include "spoke_options.h"

#include <string.h>

#include "base/check.h"
#include "base/units.h"

#define WAIT_HUB_MAX_MS (24 * INT64_C(3600000))

static const char HELP[] =
    "usage: zmqcat-spoke [TOKEN] [options]\n"
    "\n"
    "Joins a hub through the tunnel: the bus at its local socket is the hub's.\n"
    "\n"
    "  --token-file FILE      the hub's token (credential `token` of the service manager). A file\n"
    "                         that is not there yet is waited for; read again on SIGHUP\n"
    "  TOKEN                  the token itself, for trying out: others on this host can read it\n"
    "  --key-file FILE        this spoke's identity, made when missing, so that the hub can allow\n"
    "                         it ($STATE_DIRECTORY/spoke.key, else a fresh one at each start)\n"
    "  --forward PORT         listen on 127.0.0.1:PORT for that port of the hub's host, "
    "repeatable\n"
    "  --forward LOCAL:REMOTE the same, with another port here\n"
    "  --wait-hub DURATION    how long a client waits for a hub that cannot be reached (30s)\n"
    "  --derp-map URL|FILE    the relays that there are, for a token that names none\n"
    "\n" ZC_OPTIONS_HELP_SOCKETS "\n" ZC_OPTIONS_HELP_LOG(
        "spoke") "  --trace                print one line for each connection\n"
                 "  --help, --version\n"
                 "\n"
                 "Durations look like 300ms, 5s, 1m30s.\n"
                 "Exit codes: 0 stopped, 1 failed, 2 usage, 78 a value or token that cannot be "
                 "used.\n";

static int take_token_file(struct zc_options *o, void *own, const struct zc_options_spec *spec,
                           const char *value)
{
    struct zc_spoke_options *s = own;
    if (value[0] == '\0')
        return zc_options_bad(o, spec->name, value, "the path is empty: name a file");
    s->token_file = value;
    return ZC_OPTIONS_RUN;
}

static int take_forward(struct zc_options *o, void *own, const struct zc_options_spec *spec,
                        const char *value)
{
    const char *colon = strchr(value, ':');
    size_t len = colon != NULL ? (size_t)(colon - value) : strlen(value);
    const char *remote = colon != NULL ? colon + 1 : value;
    struct zc_options_forward f;
    (void)own;
    if (!zc_options_port(value, len, &f.local) ||
        !zc_options_port(remote, strlen(remote), &f.remote))
        return zc_options_bad(o, spec->name, value,
                              "want a port, or LOCAL:REMOTE: numbers from 1 to 65535");
    if (o->forward_count == ZC_OPTIONS_FORWARD_MAX)
        return zc_options_bad(o, spec->name, value, "too many: at most 32");
    o->forward[o->forward_count++] = f;
    return ZC_OPTIONS_RUN;
}

static int take_wait_hub(struct zc_options *o, void *own, const struct zc_options_spec *spec,
                         const char *value)
{
    struct zc_spoke_options *s = own;
    int64_t ms;
    if (zc_units_duration_ms(value, &ms) < 0 || ms < 0 || ms > WAIT_HUB_MAX_MS)
        return zc_options_bad(o, spec->name, value,
                              "want a duration like 30s or 500ms, at most a day");
    s->wait_hub_ms = ms;
    return ZC_OPTIONS_RUN;
}

static const struct zc_options_spec specs[] = {
    {"token-file", true, take_token_file, 0, 0, 0, false},
    {"forward", true, take_forward, 0, 0, 0, false},
    {"wait-hub", true, take_wait_hub, 0, 0, 0, false},
};

int zc_spoke_options_parse(int argc, char **argv, struct zc_logsink *log,
                           struct zc_spoke_options *ret_options)
{
    struct zc_options_request request = {
        .program = "zmqcat-spoke",
        .help = HELP,
        .specs = specs,
        .specs_count = ZC_ARRAY_LEN(specs),
        .own = ret_options,
        .argument = true,
    };
    memset(ret_options, 0, sizeof(*ret_options));
    ret_options->wait_hub_ms = 30000;
    int r = zc_options_parse(&request, argc, argv, log, &ret_options->shared);
    if (r == ZC_OPTIONS_RUN && ret_options->shared.argument != NULL &&
        ret_options->token_file != NULL) {
        zc_logsink_line(log, ZC_LOGSINK_ERR, "a token and --token-file: choose one");
        return ZC_OPTIONS_USAGE;
    }
    return r;
}
