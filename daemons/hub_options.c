/*
 * Options of zmqcat-hub. An unknown option or a missing value is a usage error (2); a value that
 * cannot be used is a configuration error (78), which a service manager does not retry.
 */
#include "hub_options.h"

#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "zmqc/msg.h"

#define EXIT_USAGE 2
#define EXIT_CONFIG 78
#define KIB UINT64_C(1024)
#define MIB (UINT64_C(1024) * 1024)

static const char HELP[] =
    "usage: zmqcat-hub --local [options]\n"
    "\n"
    "Serves the bus: named mailboxes, topics and requests for the programs of this host.\n"
    "\n"
    "  --local                serve this host only (needed: there is no other way yet)\n"
    "  --listen ADDR          bus socket, repeatable: unix:///path, /path, ./path, "
    "tcp://host:port,\n"
    "                         host:port, [::1]:port (default: sockets handed over by the service\n"
    "                         manager, else unix:///tmp/zmqcat-<uid>.sock)\n"
    "  --control ADDR         the administrator's socket (default: the one handed over as "
    "`control`,\n"
    "                         else the first unix --listen path plus .ctl)\n"
    "  --socket-mode MODE     octal mode of bus sockets made here (0600; 0660 with a group)\n"
    "  --socket-group GROUP   group of bus sockets made here\n"
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
    "  --headers-max N        headers of one message, at most 64 (64)\n"
    "  --headers-bytes SIZE   names and values of one message's headers (16k)\n"
    "  --mailboxes-max N      mailboxes (100000)\n"
    "  --sessions-max N       connected clients (20000)\n"
    "  --session-bytes SIZE   output waiting for one client (8m)\n"
    "\n"
    "  --name NAME            this hub's name in its status line\n"
    "  --quiet                print warnings and errors only\n"
    "  --log-level LEVEL      err, warning, notice, info, debug (info)\n"
    "  --trace                print one line for each frame, never a payload\n"
    "  --help, --version\n"
    "\n"
    "Sizes are bytes or end in k, m or g; durations look like 300ms, 5s, 1m30s.\n"
    "Exit codes: 0 stopped, 1 failed, 2 usage, 78 a value that cannot be used.\n";

enum option_id {
    OPT_LISTEN = 256,
    OPT_CONTROL,
    OPT_LOCAL,
    OPT_MAILBOX,
    OPT_FSYNC,
    OPT_HEARTBEAT,
    OPT_NAME,
    OPT_QUIET,
    OPT_TRACE,
    OPT_LOG_LEVEL,
    OPT_SOCKET_MODE,
    OPT_SOCKET_GROUP,
    OPT_HELP,
    OPT_VERSION,
    OPT_LIMIT, /* OPT_LIMIT + i: limits[i] */
};

/* Options that are one number of the hub's configuration. */
static const struct {
    const char *name;
    size_t offset;
    bool bytes;
    uint64_t min, max;
} limits[] = {
    {"mailbox-cap", offsetof(struct zc_hub_config, mailbox_cap), false, 1, 100000000},
    {"max-payload", offsetof(struct zc_hub_config, payload_max), true, 1, 1400 * KIB},
    {"sub-buffer", offsetof(struct zc_hub_config, sub_buffer), false, 1, 1000000},
    {"topics-max", offsetof(struct zc_hub_config, topics_max), false, 0, 100000000},
    {"headers-max", offsetof(struct zc_hub_config, headers_max), false, 0, ZC_MSG_HEADERS_CAP},
    {"headers-bytes", offsetof(struct zc_hub_config, headers_bytes), true, 0, 512 * KIB},
    {"mailboxes-max", offsetof(struct zc_hub_config, mailboxes_max), false, 1, 100000000},
    {"sessions-max", offsetof(struct zc_hub_config, sessions_max), false, 1, 1000000},
    {"session-bytes", offsetof(struct zc_hub_config, session_bytes), true, 64 * KIB, 1024 * MIB},
    {"segment", offsetof(struct zc_hub_config, log.segment_bytes), true, 64 * KIB, 1024 * MIB},
};

static const struct option base_options[] = {
    {"listen", required_argument, NULL, OPT_LISTEN},
    {"control", required_argument, NULL, OPT_CONTROL},
    {"local", no_argument, NULL, OPT_LOCAL},
    {"mailbox", required_argument, NULL, OPT_MAILBOX},
    {"fsync", required_argument, NULL, OPT_FSYNC},
    {"heartbeat", required_argument, NULL, OPT_HEARTBEAT},
    {"name", required_argument, NULL, OPT_NAME},
    {"quiet", no_argument, NULL, OPT_QUIET},
    {"trace", no_argument, NULL, OPT_TRACE},
    {"log-level", required_argument, NULL, OPT_LOG_LEVEL},
    {"socket-mode", required_argument, NULL, OPT_SOCKET_MODE},
    {"socket-group", required_argument, NULL, OPT_SOCKET_GROUP},
    {"help", no_argument, NULL, OPT_HELP},
    {"version", no_argument, NULL, OPT_VERSION},
};

/* What one parse carries around. */
struct parse {
    struct zc_logsink *log;
    struct zc_hub_options *o;
    bool has_mode;
};

/* "--option "value": why", exit code 78. */
static int bad_value(struct parse *p, const char *option, const char *value, const char *why)
{
    char escaped[300];
    zc_text_escape(escaped, sizeof(escaped), zc_slice_str(value));
    zc_logsink_line(p->log, ZC_LOGSINK_ERR, "--%s \"%s\": %s", option, escaped, why);
    return EXIT_CONFIG;
}

static int take_listen(struct parse *p, const char *value)
{
    char why[ZC_ADDRESS_WHY_MAX];
    struct zc_hub_options *o = p->o;
    if (o->listen_count == ZC_HUB_OPTIONS_LISTEN_MAX)
        return bad_value(p, "listen", value, "too many: at most 28");
    if (zc_address_parse(value, &o->listen[o->listen_count], why) < 0)
        return bad_value(p, "listen", value, why);
    o->listen_count++;
    return ZC_HUB_OPTIONS_RUN;
}

static int take_control(struct parse *p, const char *value)
{
    char why[ZC_ADDRESS_WHY_MAX];
    if (zc_address_parse(value, &p->o->control, why) < 0)
        return bad_value(p, "control", value, why);
    p->o->has_control = true;
    return ZC_HUB_OPTIONS_RUN;
}

static int take_mailbox(struct parse *p, const char *value)
{
    if (value[0] == '\0')
        return bad_value(p, "mailbox", value, "the path is empty: name a directory");
    p->o->mailbox = value;
    return ZC_HUB_OPTIONS_RUN;
}

static int take_fsync(struct parse *p, const char *value)
{
    static const char *const names[] = {"always", "batch", "never"};
    static const enum zc_log_sync modes[] = {ZC_LOG_SYNC_ALWAYS, ZC_LOG_SYNC_BATCH,
                                             ZC_LOG_SYNC_NEVER};
    for (size_t i = 0; i < ZC_ARRAY_LEN(names); i++) {
        if (strcmp(value, names[i]) == 0) {
            p->o->hub.log.sync = modes[i];
            return ZC_HUB_OPTIONS_RUN;
        }
    }
    return bad_value(p, "fsync", value, "want always, batch or never");
}

static int take_heartbeat(struct parse *p, const char *value)
{
    if (zc_units_duration_ms(value, &p->o->hub.heartbeat_ms) < 0)
        return bad_value(p, "heartbeat", value, "want a duration like 5s or 300ms, or 0 for none");
    return ZC_HUB_OPTIONS_RUN;
}

static int take_name(struct parse *p, const char *value)
{
    if (strlen(value) > 1024)
        return bad_value(p, "name", value, "longer than 1024 bytes");
    zc_text_escape(p->o->name, sizeof(p->o->name), zc_slice_str(value));
    return ZC_HUB_OPTIONS_RUN;
}

static int take_log_level(struct parse *p, const char *value)
{
    int level = zc_logsink_level(value);
    if (level < 0)
        return bad_value(p, "log-level", value, "want err, warning, notice, info or debug");
    p->o->log_level = level;
    return ZC_HUB_OPTIONS_RUN;
}

static int take_socket_mode(struct parse *p, const char *value)
{
    size_t len = strlen(value);
    if (len < 3 || len > 4 || strspn(value, "01234567") != len || strtoul(value, NULL, 8) > 0777)
        return bad_value(p, "socket-mode", value, "want an octal mode like 0660");
    p->o->socket.mode = (mode_t)strtoul(value, NULL, 8);
    p->has_mode = true;
    return ZC_HUB_OPTIONS_RUN;
}

static int take_socket_group(struct parse *p, const char *value)
{
    uint64_t gid;
    const struct group *g = getgrnam(value);
    if (g != NULL)
        gid = g->gr_gid;
    else if (zc_units_count(value, &gid) < 0 || gid >= UINT32_MAX)
        return bad_value(p, "socket-group", value, "no such group: create it, or name another");
    p->o->socket.has_group = true;
    p->o->socket.group = (gid_t)gid;
    return ZC_HUB_OPTIONS_RUN;
}

static int take_limit(struct parse *p, size_t i, const char *value)
{
    uint64_t n;
    char why[120];
    int r = limits[i].bytes ? zc_units_bytes(value, &n) : zc_units_count(value, &n);
    if (r < 0 || n < limits[i].min || n > limits[i].max) {
        snprintf(why, sizeof(why), "want a %s from %llu to %llu",
                 limits[i].bytes ? "size like 64k" : "number", (unsigned long long)limits[i].min,
                 (unsigned long long)limits[i].max);
        return bad_value(p, limits[i].name, value, why);
    }
    memcpy((char *)&p->o->hub + limits[i].offset, &n, sizeof(n));
    return ZC_HUB_OPTIONS_RUN;
}

static int take(struct parse *p, int id, const char *value)
{
    switch (id) {
    case OPT_LISTEN:
        return take_listen(p, value);
    case OPT_CONTROL:
        return take_control(p, value);
    case OPT_LOCAL:
        p->o->local = true;
        return ZC_HUB_OPTIONS_RUN;
    case OPT_MAILBOX:
        return take_mailbox(p, value);
    case OPT_FSYNC:
        return take_fsync(p, value);
    case OPT_HEARTBEAT:
        return take_heartbeat(p, value);
    case OPT_NAME:
        return take_name(p, value);
    case OPT_QUIET:
        p->o->log_level = ZC_LOGSINK_WARNING;
        return ZC_HUB_OPTIONS_RUN;
    case OPT_TRACE:
        p->o->hub.trace = true;
        return ZC_HUB_OPTIONS_RUN;
    case OPT_LOG_LEVEL:
        return take_log_level(p, value);
    case OPT_SOCKET_MODE:
        return take_socket_mode(p, value);
    case OPT_SOCKET_GROUP:
        return take_socket_group(p, value);
    default:
        return take_limit(p, (size_t)(id - OPT_LIMIT), value);
    }
}

/* Text for getopt's complaints; exit code 2. */
static int usage_error(struct parse *p, int c, char **argv)
{
    char escaped[200], letter[3] = {'-', (char)optopt, '\0'};
    bool is_short = optopt > 0 && optopt < OPT_LISTEN;
    const char *word = is_short ? letter : argv[optind - 1];
    const char *why = "not an option of this program";
    if (c == ':')
        why = "needs a value";
    else if (optopt >= OPT_LISTEN)
        why = "takes no value";
    zc_text_escape(escaped, sizeof(escaped), zc_slice_str(word));
    zc_logsink_line(p->log, ZC_LOGSINK_ERR, "%s: %s: see zmqcat-hub --help", escaped, why);
    return EXIT_USAGE;
}

static int print_and_end(const char *text)
{
    return fputs(text, stdout) < 0 || fflush(stdout) != 0 ? 1 : 0;
}

/* What only all options together can tell. */
static int finish(struct parse *p, int argc, char **argv)
{
    struct zc_hub_options *o = p->o;
    if (optind < argc) {
        char escaped[200];
        zc_text_escape(escaped, sizeof(escaped), zc_slice_str(argv[optind]));
        zc_logsink_line(p->log, ZC_LOGSINK_ERR, "%s: unexpected argument: see zmqcat-hub --help",
                        escaped);
        return EXIT_USAGE;
    }
    if (!o->local) {
        zc_logsink_line(
            p->log, ZC_LOGSINK_ERR,
            "no --local: this version serves the programs of one host only: add --local");
        return EXIT_CONFIG;
    }
    if (!p->has_mode)
        o->socket.mode = o->socket.has_group ? 0660 : 0600;
    return ZC_HUB_OPTIONS_RUN;
}

int zc_hub_options_parse(int argc, char **argv, struct zc_logsink *log,
                         struct zc_hub_options *ret_options)
{
    struct option all[ZC_ARRAY_LEN(base_options) + ZC_ARRAY_LEN(limits) + 1];
    struct parse p = {.log = log, .o = ret_options};
    size_t n = ZC_ARRAY_LEN(base_options);
    memset(all, 0, sizeof(all));
    memcpy(all, base_options, sizeof(base_options));
    for (size_t i = 0; i < ZC_ARRAY_LEN(limits); i++)
        all[n + i] = (struct option){limits[i].name, required_argument, NULL, OPT_LIMIT + (int)i};
    memset(ret_options, 0, sizeof(*ret_options));
    zc_hub_config_default(&ret_options->hub);
    ret_options->log_level = ZC_LOGSINK_INFO;
    opterr = 0;
    for (;;) {
        int c = getopt_long(argc, argv, ":", all, NULL);
        if (c == -1)
            return finish(&p, argc, argv);
        if (c == '?' || c == ':')
            return usage_error(&p, c, argv);
        if (c == OPT_HELP)
            return print_and_end(HELP);
        if (c == OPT_VERSION)
            return print_and_end("zmqcat-hub " ZC_VERSION "\n");
        int r = take(&p, c, optarg);
        if (r != ZC_HUB_OPTIONS_RUN)
            return r;
    }
}
