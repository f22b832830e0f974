/*
 * What the command lines of the daemons share: the parser, and the options that all of them have.
 * An unknown option or a missing value is a usage error (2); a value that cannot be used is a
 * configuration error (78), which a service manager does not retry.
 */
#ifndef ZC_DAEMONS_OPTIONS_H
#define ZC_DAEMONS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/address.h"
#include "host/logsink.h"
#include "host/unixsock.h"

#define ZC_OPTIONS_LISTEN_MAX 28
#define ZC_OPTIONS_FORWARD_MAX 32
#define ZC_OPTIONS_NAME_MAX 64
#define ZC_OPTIONS_RUN (-1)
#define ZC_OPTIONS_USAGE 2
#define ZC_OPTIONS_CONFIG 78

/* A port of the hub's host, and the one that stands for it here (a hub's are the same). */
struct zc_options_forward {
    uint16_t local, remote;
};

struct zc_options {
    const char *program;
    struct zc_logsink *log;
    struct zc_address listen[ZC_OPTIONS_LISTEN_MAX];
    size_t listen_count;
    struct zc_address control;
    bool has_control;
    struct zc_unixsock_options socket; /* mode and group of bus sockets */
    bool has_mode;
    char name[ZC_OPTIONS_NAME_MAX]; /* escaped, cut; empty when not given */
    int log_level;
    bool trace;
    const char *key_file, *derp_map; /* NULL: not given */
    const char *argument;            /* the positional one, NULL: none */
    struct zc_options_forward forward[ZC_OPTIONS_FORWARD_MAX];
    size_t forward_count;
};

/* Help that is the same for all daemons. */
#define ZC_OPTIONS_HELP_SOCKETS                                                                    \
    "  --listen ADDR          bus socket, repeatable: unix:///path, /path, ./path, "               \
    "tcp://host:port,\n"                                                                           \
    "                         host:port, [::1]:port (default: sockets handed over by the "         \
    "service\n"                                                                                    \
    "                         manager, else unix:///tmp/zmqcat-<uid>.sock)\n"                      \
    "  --control ADDR         the administrator's socket (default: the one handed over as "        \
    "`control`,\n"                                                                                 \
    "                         else the first unix --listen path plus .ctl)\n"                      \
    "  --socket-mode MODE     octal mode of bus sockets made here (0600; 0660 with a group)\n"     \
    "  --socket-group GROUP   group of bus sockets made here\n"
#define ZC_OPTIONS_HELP_LOG(who)                                                                   \
    "  --name NAME            this " who "'s name in its status line\n"                            \
    "  --quiet                print warnings and errors only\n"                                    \
    "  --log-level LEVEL      err, warning, notice, info, debug (info)\n"

struct zc_options_spec {
    const char *name;
    bool value; /* takes one */
    /* ZC_OPTIONS_RUN, or the exit code after it said what is wrong. own: the daemon's options. */
    int (*take)(struct zc_options *o, void *own, const struct zc_options_spec *spec,
                const char *value);
    size_t offset; /* for the daemon's own use, with these */
    uint64_t min, max;
    bool bytes;
};

/* The options that all daemons have, and their number. */
extern const struct zc_options_spec zc_options_shared[];
extern const size_t zc_options_shared_count;

/* What is asked of zc_options_parse. */
struct zc_options_request {
    const char *program, *help;
    const struct zc_options_spec *specs; /* the daemon's, beside the shared ones */
    size_t specs_count;
    void *own;
    bool argument; /* one positional argument is allowed */
};

/* ZC_OPTIONS_RUN, or the exit code when there is nothing to run (help, version, a bad option: said
 * on `log`). */
int zc_options_parse(const struct zc_options_request *request, int argc, char **argv,
                     struct zc_logsink *log, struct zc_options *ret_options);
/* Says `--option "value": why`; 78. */
int zc_options_bad(const struct zc_options *o, const char *option, const char *value,
                   const char *why);
/* A take function for a uint64_t at offset of own, from min to max. */
int zc_options_take_number(struct zc_options *o, void *own, const struct zc_options_spec *spec,
                           const char *value);
/* A port, 1 to 65535. */
bool zc_options_port(const char *text, size_t len, uint16_t *ret_port);

#endif
