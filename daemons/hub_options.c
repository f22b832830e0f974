/* Options of zmqcat-hub; the ones that it shares with the other daemons are in options.c. */
#include "hub_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/units.h"
#include "zmqc/msg.h"

#define KIB UINT64_C(1024)
#define MIB (UINT64_C(1024) * 1024)

static const char HELP[] =
    "usage: zmqcat-hub [options]\n"
    "\n"
    "Serves the bus: named mailboxes, topics and requests for the programs of this host and, "
    "through\n"
    "the tunnel, of every host that joins with the token.\n"
    "\n"
    "  --local                no tunnel: serve this host only\n" ZC_OPTIONS_HELP_SOCKETS "\n"
    "  --key-file FILE        this hub's identity, made when missing, so that its token stays the\n"
    "                         same ($STATE_DIRECTORY/hub.key, else a fresh one at each start)\n"
    "  --token-out FILE       where the token is written, for its owner only "
    "($STATE_DIRECTORY/token)\n"
    "  --print-token          print the token alone on standard output (when that is a terminal)\n"
    "  --allow nodekey:HEX    let only these spokes in; repeatable\n"
    "  --allow-file FILE      the same, one a line, # begins a comment; read again on SIGHUP\n"
    "  --no-psk               a token without secret, for old peers; needs --allow or --open\n"
    "  --open                 with --no-psk: whoever knows the token may come in\n"
    "  --forward PORT         let spokes reach 127.0.0.1:PORT, repeatable\n"
    "  --derp-map URL|FILE    the relays that there are (https://tailcat.dev/derpmap.json)\n"
    "  --region ID|HOST[:PORT]  the relay to use (the map's first)\n"
    "  --clients-max N        spokes remembered (4096)\n"
    "\n"
    "  --mailbox DIR          keep mailboxes on disk in this directory (default: in memory)\n"
    "  --fsync WHEN           always (ok means on disk), batch (within 50 ms), never (always)\n"
    "  --segment SIZE         size of the log's files, 64k to 1g (8m)\n"
    "\n"
    "  --heartbeat DURATION   ping a silent client this often; 0 or less: never (5s)\n"
    "  --mailbox-cap N        messages queued in one mailbox (1024)\n"
    "  --max-payload SIZE     of one message, at most 1400k (1m)\n"
    "  --sub-buffer N         deliveries buffered for one subscriber (64)\n"
    "  --topics-max N         topics whose last value is kept (4096)\n"
    "  --headers-max N        headers of one message, at most 256 (64)\n"
    "  --headers-bytes SIZE   names and values of one message's headers (16k)\n"
    "  --mailboxes-max N      mailboxes (100000)\n"
    "  --sessions-max N       connected clients (20000)\n"
    "  --session-bytes SIZE   output waiting for one client (8m)\n"
    "\n" ZC_OPTIONS_HELP_LOG(
        "hub") "  --trace                print one line for each frame, never a payload\n"
               "  --help, --version\n"
               "\n"
               "Sizes are bytes or end in k, m or g; durations look like 300ms, 5s, 1m30s.\n"
               "Exit codes: 0 stopped, 1 failed, 2 usage, 78 a value that cannot be used.\n";

static int take_mailbox(struct zc_options *o, void *own, const struct zc_options_spec *spec,
                        const char *value)
{
    struct zc_hub_options *h = own;
    if (value[0] == '\0')
        return zc_options_bad(o, spec->name, value, "the path is empty: name a directory");
    h->mailbox = value;
    return ZC_OPTIONS_RUN;
}

static int take_fsync(struct zc_options *o, void *own, const struct zc_options_spec *spec,
                      const char *value)
{
    static const char *const names[] = {"always", "batch", "never"};
    static const enum zc_log_sync modes[] = {ZC_LOG_SYNC_ALWAYS, ZC_LOG_SYNC_BATCH,
                                             ZC_LOG_SYNC_NEVER};
    struct zc_hub_options *h = own;
    for (size_t i = 0; i < ZC_ARRAY_LEN(names); i++) {
        if (strcmp(value, names[i]) == 0) {
            h->hub.log.sync = modes[i];
            return ZC_OPTIONS_RUN;
        }
    }
    return zc_options_bad(o, spec->name, value, "want always, batch or never");
}

static int take_heartbeat(struct zc_options *o, void *own, const struct zc_options_spec *spec,
                          const char *value)
{
    struct zc_hub_options *h = own;
    if (zc_units_duration_ms(value, &h->hub.heartbeat_ms) < 0)
        return zc_options_bad(o, spec->name, value,
                              "want a duration like 5s or 300ms, or 0 for none");
    return ZC_OPTIONS_RUN;
}

static int take_flag(struct zc_options *o, void *own, const struct zc_options_spec *spec,
                     const char *value)
{
    (void)o;
    (void)value;
    *(bool *)((char *)own + spec->offset) = true;
    return ZC_OPTIONS_RUN;
}

static int take_text(struct zc_options *o, void *own, const struct zc_options_spec *spec,
                     const char *value)
{
    if (value[0] == '\0')
        return zc_options_bad(o, spec->name, value, "the value is empty");
    memcpy((char *)own + spec->offset, &value, sizeof(value));
    return ZC_OPTIONS_RUN;
}

static int take_allow(struct zc_options *o, void *own, const struct zc_options_spec *spec,
                      const char *value)
{
    struct zc_hub_options *h = own;
    struct zc_key key;
    if (zc_secret_parse(ZC_SECRET_NODE_KEY, zc_slice_str(value), key.b) < 0)
        return zc_options_bad(o, spec->name, value,
                              "want nodekey: and 64 hex digits, as `zmqcat nodekey` prints it");
    if (h->allow_count == ZC_HUB_OPTIONS_ALLOW_MAX)
        return zc_options_bad(o, spec->name, value, "too many: use --allow-file");
    struct zc_key *more = realloc(h->allow, (h->allow_count + 1) * sizeof(*more));
    if (more == NULL)
        return zc_options_bad(o, spec->name, value, "out of memory");
    h->allow = more;
    h->allow[h->allow_count++] = key;
    return ZC_OPTIONS_RUN;
}

static int take_forward(struct zc_options *o, void *own, const struct zc_options_spec *spec,
                        const char *value)
{
    uint16_t port;
    (void)own;
    if (!zc_options_port(value, strlen(value), &port) || port == 7)
        return zc_options_bad(o, spec->name, value,
                              port == 7 ? "port 7 is the bus itself" : "want a port, 1 to 65535");
    if (o->forward_count == ZC_OPTIONS_FORWARD_MAX)
        return zc_options_bad(o, spec->name, value, "too many: at most 32");
    o->forward[o->forward_count++] = (struct zc_options_forward){port, port};
    return ZC_OPTIONS_RUN;
}

#define HUB(member) offsetof(struct zc_hub_options, hub.member)
#define OWN(member) offsetof(struct zc_hub_options, member)

static const struct zc_options_spec specs[] = {
    {"local", false, take_flag, OWN(local), 0, 0, false},
    {"mailbox", true, take_mailbox, 0, 0, 0, false},
    {"fsync", true, take_fsync, 0, 0, 0, false},
    {"heartbeat", true, take_heartbeat, 0, 0, 0, false},
    {"token-out", true, take_text, OWN(token_out), 0, 0, false},
    {"print-token", false, take_flag, OWN(print_token), 0, 0, false},
    {"no-psk", false, take_flag, OWN(no_psk), 0, 0, false},
    {"open", false, take_flag, OWN(open), 0, 0, false},
    {"allow", true, take_allow, 0, 0, 0, false},
    {"allow-file", true, take_text, OWN(allow_file), 0, 0, false},
    {"forward", true, take_forward, 0, 0, 0, false},
    {"region", true, take_text, OWN(region), 0, 0, false},
    {"clients-max", true, zc_options_take_number, OWN(clients_max), 1, 65536, false},
    {"mailbox-cap", true, zc_options_take_number, HUB(mailbox_cap), 1, 100000000, false},
    {"max-payload", true, zc_options_take_number, HUB(payload_max), 1, 1400 * KIB, true},
    {"sub-buffer", true, zc_options_take_number, HUB(sub_buffer), 1, 1000000, false},
    {"topics-max", true, zc_options_take_number, HUB(topics_max), 0, 100000000, false},
    {"headers-max", true, zc_options_take_number, HUB(headers_max), 0, ZC_MSG_HEADERS_CAP, false},
    {"headers-bytes", true, zc_options_take_number, HUB(headers_bytes), 0, 512 * KIB, true},
    {"mailboxes-max", true, zc_options_take_number, HUB(mailboxes_max), 1, 100000000, false},
    {"sessions-max", true, zc_options_take_number, HUB(sessions_max), 1, 1000000, false},
    {"session-bytes", true, zc_options_take_number, HUB(session_bytes), 64 * KIB, 1024 * MIB, true},
    {"segment", true, zc_options_take_number, HUB(log.segment_bytes), 64 * KIB, 1024 * MIB, true},
};

static int config_error(struct zc_logsink *log, const char *text)
{
    zc_logsink_line(log, ZC_LOGSINK_ERR, "%s", text);
    return ZC_OPTIONS_CONFIG;
}

/* The first option that is about the tunnel, or NULL. */
static const char *tunnel_option(const struct zc_hub_options *h)
{
    const struct zc_options *o = &h->shared;
    const struct {
        bool given;
        const char *name;
    } all[] = {
        {h->token_out != NULL, "--token-out"},
        {h->print_token, "--print-token"},
        {h->no_psk, "--no-psk"},
        {h->open, "--open"},
        {h->allow_count > 0, "--allow"},
        {h->allow_file != NULL, "--allow-file"},
        {h->region != NULL, "--region"},
        {o->key_file != NULL, "--key-file"},
        {o->derp_map != NULL, "--derp-map"},
        {o->forward_count > 0, "--forward"},
    };
    for (size_t i = 0; i < ZC_ARRAY_LEN(all); i++)
        if (all[i].given)
            return all[i].name;
    return NULL;
}

/* What only all options together can tell. */
static int finish(const struct zc_hub_options *h, struct zc_logsink *log)
{
    const char *other = tunnel_option(h);
    char why[120];
    bool listed = h->allow_count > 0 || h->allow_file != NULL;
    if (h->local && other != NULL) {
        snprintf(why, sizeof(why),
                 "--local: it means no tunnel, and %s is about the tunnel: leave one of them out",
                 other);
        return config_error(log, why);
    }
    if (h->no_psk && !listed && !h->open)
        return config_error(log, "--no-psk: the relay sees all that such a token holds, and could "
                                 "come in itself: add --allow nodekey:HEX, or --open if everybody "
                                 "may");
    if (h->open && listed)
        return config_error(log, "--open: it lets everybody in, and --allow does not: choose one");
    if (h->open && !h->no_psk)
        return config_error(log,
                            "--open: it is for --no-psk: leave it out; the secret of the token "
                            "lets in who has it");
    return ZC_OPTIONS_RUN;
}

int zc_hub_options_parse(int argc, char **argv, struct zc_logsink *log,
                         struct zc_hub_options *ret_options)
{
    struct zc_options_request request = {
        .program = "zmqcat-hub",
        .help = HELP,
        .specs = specs,
        .specs_count = ZC_ARRAY_LEN(specs),
        .own = ret_options,
    };
    memset(ret_options, 0, sizeof(*ret_options));
    zc_hub_config_default(&ret_options->hub);
    ret_options->clients_max = 4096;
    int r = zc_options_parse(&request, argc, argv, log, &ret_options->shared);
    ret_options->hub.trace = ret_options->shared.trace;
    return r == ZC_OPTIONS_RUN ? finish(ret_options, log) : r;
}

void zc_hub_options_done(struct zc_hub_options *options)
{
    free(options->allow);
    options->allow = NULL;
}
