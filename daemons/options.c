/* The parser of the daemons' command lines and their common options; see options.h. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"

#define SPECS_MAX 64
#define FIRST_ID 256 /* above all characters */
#define OPT_HELP (FIRST_ID + SPECS_MAX)
#define OPT_VERSION (OPT_HELP + 1)

int zc_options_bad(const struct zc_options *o, const char *option, const char *value,
                   const char *why)
{
    char escaped[300];
    zc_text_escape(escaped, sizeof(escaped), zc_slice_str(value));
    zc_logsink_line(o->log, ZC_LOGSINK_ERR, "--%s \"%s\": %s", option, escaped, why);
    return ZC_OPTIONS_CONFIG;
}

int zc_options_take_number(struct zc_options *o, void *own, const struct zc_options_spec *spec,
                           const char *value)
{
    uint64_t n;
    char why[120];
    int r = spec->bytes ? zc_units_bytes(value, &n) : zc_units_count(value, &n);
    if (r < 0 || n < spec->min || n > spec->max) {
        snprintf(why, sizeof(why), "want a %s from %llu to %llu",
                 spec->bytes ? "size like 64k" : "number", (unsigned long long)spec->min,
                 (unsigned long long)spec->max);
        return zc_options_bad(o, spec->name, value, why);
    }
    memcpy((char *)own + spec->offset, &n, sizeof(n));
    return ZC_OPTIONS_RUN;
}

bool zc_options_port(const char *text, size_t len, uint16_t *ret_port)
{
    unsigned long port = 0;
    if (len == 0 || len > 5)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        port = port * 10 + (unsigned long)(text[i] - '0');
    }
    if (port == 0 || port > 65535)
        return false;
    *ret_port = (uint16_t)port;
    return true;
}

/* ---- the shared options ---- */

static int take_listen(struct zc_options *o, void *own, const struct zc_options_spec *spec,
                       const char *value)
{
    char why[ZC_ADDRESS_WHY_MAX];
    (void)own;
    if (o->listen_count == ZC_OPTIONS_LISTEN_MAX)
        return zc_options_bad(o, spec->name, value, "too many: at most 28");
    if (zc_address_parse(value, &o->listen[o->listen_count], why) < 0)
        return zc_options_bad(o, spec->name, value, why);
    o->listen_count++;
    return ZC_OPTIONS_RUN;
}

static int take_control(struct zc_options *o, void *own, const struct zc_options_spec *spec,
                        const char *value)
{
    char why[ZC_ADDRESS_WHY_MAX];
    (void)own;
    if (zc_address_parse(value, &o->control, why) < 0)
        return zc_options_bad(o, spec->name, value, why);
    o->has_control = true;
    return ZC_OPTIONS_RUN;
}

static int take_name(struct zc_options *o, void *own, const struct zc_options_spec *spec,
                     const char *value)
{
    (void)own;
    if (strlen(value) > 1024)
        return zc_options_bad(o, spec->name, value, "longer than 1024 bytes");
    zc_text_escape(o->name, sizeof(o->name), zc_slice_str(value));
    return ZC_OPTIONS_RUN;
}

static int take_log_level(struct zc_options *o, void *own, const struct zc_options_spec *spec,
                          const char *value)
{
    (void)own;
    int level = zc_logsink_level(value);
    if (level < 0)
        return zc_options_bad(o, spec->name, value, "want err, warning, notice, info or debug");
    o->log_level = level;
    return ZC_OPTIONS_RUN;
}

static int take_quiet(struct zc_options *o, void *own, const struct zc_options_spec *spec,
                      const char *value)
{
    (void)own;
    (void)spec;
    (void)value;
    o->log_level = ZC_LOGSINK_WARNING;
    return ZC_OPTIONS_RUN;
}

static int take_trace(struct zc_options *o, void *own, const struct zc_options_spec *spec,
                      const char *value)
{
    (void)own;
    (void)spec;
    (void)value;
    o->trace = true;
    return ZC_OPTIONS_RUN;
}

static int take_socket_mode(struct zc_options *o, void *own, const struct zc_options_spec *spec,
                            const char *value)
{
    size_t len = strlen(value);
    (void)own;
    if (len < 3 || len > 4 || strspn(value, "01234567") != len || strtoul(value, NULL, 8) > 0777)
        return zc_options_bad(o, spec->name, value, "want an octal mode like 0660");
    o->socket.mode = (mode_t)strtoul(value, NULL, 8);
    o->has_mode = true;
    return ZC_OPTIONS_RUN;
}

static int take_socket_group(struct zc_options *o, void *own, const struct zc_options_spec *spec,
                             const char *value)
{
    uint64_t gid;
    const struct group *g = getgrnam(value);
    (void)own;
    if (g != NULL)
        gid = g->gr_gid;
    else if (zc_units_count(value, &gid) < 0 || gid >= UINT32_MAX)
        return zc_options_bad(o, spec->name, value, "no such group: create it, or name another");
    o->socket.has_group = true;
    o->socket.group = (gid_t)gid;
    return ZC_OPTIONS_RUN;
}

static int take_text(const char **ret_text, struct zc_options *o,
                     const struct zc_options_spec *spec, const char *value)
{
    if (value[0] == '\0')
        return zc_options_bad(o, spec->name, value, "the value is empty");
    *ret_text = value;
    return ZC_OPTIONS_RUN;
}

static int take_key_file(struct zc_options *o, void *own, const struct zc_options_spec *spec,
                         const char *value)
{
    (void)own;
    return take_text(&o->key_file, o, spec, value);
}

static int take_derp_map(struct zc_options *o, void *own, const struct zc_options_spec *spec,
                         const char *value)
{
    (void)own;
    return take_text(&o->derp_map, o, spec, value);
}

const struct zc_options_spec zc_options_shared[] = {
    {"listen", true, take_listen, 0, 0, 0, false},
    {"control", true, take_control, 0, 0, 0, false},
    {"name", true, take_name, 0, 0, 0, false},
    {"quiet", false, take_quiet, 0, 0, 0, false},
    {"trace", false, take_trace, 0, 0, 0, false},
    {"log-level", true, take_log_level, 0, 0, 0, false},
    {"socket-mode", true, take_socket_mode, 0, 0, 0, false},
    {"socket-group", true, take_socket_group, 0, 0, 0, false},
    {"key-file", true, take_key_file, 0, 0, 0, false},
    {"derp-map", true, take_derp_map, 0, 0, 0, false},
};
const size_t zc_options_shared_count = ZC_ARRAY_LEN(zc_options_shared);

/* ---- the parser ---- */

/* Text for getopt's complaints; exit code 2. */
static int usage_error(const struct zc_options *o, int c, char **argv)
{
    char escaped[200], letter[3] = {'-', (char)optopt, '\0'};
    bool is_short = optopt > 0 && optopt < FIRST_ID;
    const char *word = is_short ? letter : argv[optind - 1];
    const char *why = "not an option of this program";
    if (c == ':')
        why = "needs a value";
    else if (optopt >= FIRST_ID)
        why = "takes no value";
    zc_text_escape(escaped, sizeof(escaped), zc_slice_str(word));
    zc_logsink_line(o->log, ZC_LOGSINK_ERR, "%s: %s: see %s --help", escaped, why, o->program);
    return ZC_OPTIONS_USAGE;
}

/* Standard output must have taken the text. */
static int printed(const struct zc_options *o)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    zc_logsink_line(o->log, ZC_LOGSINK_ERR, "standard output: %s", strerror(errno));
    return 1;
}

/* What only all options together can tell. */
static int finish(struct zc_options *o, bool argument, int argc, char **argv)
{
    if (argument && optind < argc)
        o->argument = argv[optind++];
    if (optind < argc) {
        char escaped[200];
        zc_text_escape(escaped, sizeof(escaped), zc_slice_str(argv[optind]));
        /* What stands there may be a secret that was cut in two. */
        zc_logsink_line(o->log, ZC_LOGSINK_ERR, "%s: unexpected argument: see %s --help",
                        argument ? "more than one token" : escaped, o->program);
        return ZC_OPTIONS_USAGE;
    }
    if (!o->has_mode)
        o->socket.mode = o->socket.has_group ? 0660 : 0600;
    return ZC_OPTIONS_RUN;
}

static size_t list_options(const struct zc_options_request *request,
                           const struct zc_options_spec *ret_specs[SPECS_MAX],
                           struct option *ret_options)
{
    size_t n = 0;
    ZC_ASSERT(zc_options_shared_count + request->specs_count <= SPECS_MAX);
    for (size_t i = 0; i < zc_options_shared_count; i++)
        ret_specs[n++] = &zc_options_shared[i];
    for (size_t i = 0; i < request->specs_count; i++)
        ret_specs[n++] = &request->specs[i];
    for (size_t i = 0; i < n; i++)
        ret_options[i] = (struct option){ret_specs[i]->name,
                                         ret_specs[i]->value ? required_argument : no_argument,
                                         NULL, FIRST_ID + (int)i};
    ret_options[n] = (struct option){"help", no_argument, NULL, OPT_HELP};
    ret_options[n + 1] = (struct option){"version", no_argument, NULL, OPT_VERSION};
    return n;
}

int zc_options_parse(const struct zc_options_request *request, int argc, char **argv,
                     struct zc_logsink *log, struct zc_options *ret_options)
{
    const struct zc_options_spec *specs[SPECS_MAX];
    struct option all[SPECS_MAX + 3];
    memset(all, 0, sizeof(all));
    list_options(request, specs, all);
    *ret_options =
        (struct zc_options){.program = request->program, .log = log, .log_level = ZC_LOGSINK_INFO};
    opterr = 0;
    for (;;) {
        int c = getopt_long(argc, argv, ":h", all, NULL);
        if (c == -1)
            return finish(ret_options, request->argument, argc, argv);
        if (c == '?' || c == ':')
            return usage_error(ret_options, c, argv);
        if (c == OPT_HELP || c == 'h')
            fputs(request->help, stdout);
        if (c == OPT_VERSION)
            printf("%s " ZC_VERSION "\n", request->program);
        if (c == OPT_HELP || c == 'h' || c == OPT_VERSION)
            return printed(ret_options);
        const struct zc_options_spec *spec = specs[c - FIRST_ID];
        int r = spec->take(ret_options, request->own, spec, optarg);
        if (r != ZC_OPTIONS_RUN)
            return r;
    }
}
