/*
 * Options by getopt_long, also after positional arguments, whatever POSIXLY_CORRECT says.
 */
#include "args.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/units.h"
#include "say.h"

#define LONG_ONLY 256 /* getopt values above all characters */

static const struct {
    uint32_t bit;
    const char *name;
    char letter;       /* 0: none */
    const char *value; /* NULL: a flag */
    const char *help;
} table[] = {
    {ZC_ARGS_LISTEN, "listen", 'l', "ADDR",
     "the bus: unix:///path, /path, ./path, tcp://host:port"},
    {ZC_ARGS_NAME, "name", 0, "TEXT", "who we say we are; default the host name"},
    {ZC_ARGS_CONTROL, "control", 0, "ADDR", "the hub's control socket"},
    {ZC_ARGS_FILE, "file", 0, "FILE", "read the payload from FILE"},
    {ZC_ARGS_HEADER, "header", 'H', "KEY=VALUE", "add a header; may be repeated"},
    {ZC_ARGS_ID, "id", 0, "TEXT", "message id; the same id is not queued twice"},
    {ZC_ARGS_DELAY, "delay", 0, "DUR", "visible only after DUR"},
    {ZC_ARGS_TTL, "ttl", 0, "DUR", "dropped after DUR"},
    {ZC_ARGS_COUNT, "count", 0, "N", "end after N messages"},
    {ZC_ARGS_RAW, "raw", 0, NULL, "add no newline to the payload"},
    {ZC_ARGS_WAIT, "wait", 0, "DUR", "give up when nothing came for DUR (exit 3)"},
    {ZC_ARGS_JSON, "json", 0, NULL, "print JSON, one object a line"},
    {ZC_ARGS_LEASE, "lease", 0, "DUR", "lease asked for; default 60s"},
    {ZC_ARGS_ACK, "ack", 0, NULL, "acknowledge the message at the end"},
    {ZC_ARGS_NEED_SUB, "need-sub", 0, NULL, "exit 4 when no subscription matched"},
    {ZC_ARGS_NO_REPLAY, "no-replay", 0, NULL, "skip the last values; only what comes from now on"},
    {ZC_ARGS_TIMEOUT, "timeout", 0, "DUR", "time for one attempt; default 1s"},
    {ZC_ARGS_RETRIES, "retries", 0, "N", "attempts; default 3"},
    {ZC_ARGS_VERBOSE, "verbose", 'v', NULL, "print the round trip and the path too"},
    {ZC_ARGS_HUB, "hub", 0, NULL, "for a hub: with a pre-shared key"},
    {ZC_ARGS_CLIENT, "client", 0, NULL, "for a spoke; the default"},
    {ZC_ARGS_HELP, "help", 'h', NULL, "this help"},
};

/* Builds what getopt_long wants. letters has room for all. */
static void option_lists(uint32_t known, char *letters, struct option *longs)
{
    *letters++ = '-'; /* positional arguments are returned in order */
    *letters++ = ':'; /* a missing value is told apart */
    for (size_t i = 0; i < ZC_ARRAY_LEN(table); i++) {
        if ((known & table[i].bit) == 0)
            continue;
        int has_arg = table[i].value != NULL ? required_argument : no_argument;
        *longs++ = (struct option){table[i].name, has_arg, NULL, LONG_ONLY + (int)i};
        if (table[i].letter == 0)
            continue;
        *letters++ = table[i].letter;
        if (table[i].value != NULL)
            *letters++ = ':';
    }
    *letters = '\0';
    *longs = (struct option){0};
}

static int bad_value(const struct zc_args *args, size_t i, const char *value, const char *want)
{
    char shown[200];
    zc_say_escape(shown, sizeof shown, value, strlen(value));
    return zc_say_usage(args->verb, "--%s %s: want %s", table[i].name, shown, want);
}

static int duration(const struct zc_args *args, size_t i, const char *value, int64_t *ret_ms)
{
    int64_t ms;
    if (zc_units_duration_ms(value, &ms) != 0 || ms < 0)
        return bad_value(args, i, value, "a duration such as 5s, 300ms, 1m30s or 2");
    *ret_ms = ms;
    return 0;
}

static int number(const struct zc_args *args, size_t i, const char *value, uint64_t min,
                  uint64_t *ret_number)
{
    uint64_t n;
    if (zc_units_count(value, &n) != 0 || n < min)
        return bad_value(args, i, value, min > 0 ? "a number from 1" : "a number");
    *ret_number = n;
    return 0;
}

static int header(struct zc_args *args, size_t i, const char *value)
{
    const char *eq = strchr(value, '=');
    if (eq == NULL || eq == value)
        return bad_value(args, i, value, "KEY=VALUE");
    if (args->headers_count == ZC_ARGS_HEADERS_MAX)
        return zc_say_usage(args->verb, "too many headers: at most %d", ZC_ARGS_HEADERS_MAX);
    for (size_t k = 0; k < args->headers_count; k++)
        if (args->headers[k].key_len == (size_t)(eq - value) &&
            memcmp(args->headers[k].key, value, (size_t)(eq - value)) == 0)
            return bad_value(args, i, value, "each KEY once");
    args->headers[args->headers_count++] =
        (struct zmqcat_header){value, (size_t)(eq - value), eq + 1, strlen(eq + 1)};
    return 0;
}

static int apply(struct zc_args *args, size_t i, const char *value)
{
    switch (table[i].bit) {
    case ZC_ARGS_LISTEN:
        args->listen = value;
        return 0;
    case ZC_ARGS_NAME:
        args->name = value;
        return 0;
    case ZC_ARGS_CONTROL:
        args->control = value;
        return 0;
    case ZC_ARGS_FILE:
        args->file = value;
        return 0;
    case ZC_ARGS_ID:
        args->id = value;
        return 0;
    case ZC_ARGS_HEADER:
        return header(args, i, value);
    case ZC_ARGS_DELAY:
        return duration(args, i, value, &args->delay_ms);
    case ZC_ARGS_TTL:
        return duration(args, i, value, &args->ttl_ms);
    case ZC_ARGS_WAIT:
        return duration(args, i, value, &args->wait_ms);
    case ZC_ARGS_LEASE:
        return duration(args, i, value, &args->lease_ms);
    case ZC_ARGS_TIMEOUT:
        return duration(args, i, value, &args->timeout_ms);
    case ZC_ARGS_COUNT:
        return number(args, i, value, 1, &args->count);
    case ZC_ARGS_RETRIES:
        return number(args, i, value, 0, &args->retries);
    case ZC_ARGS_RAW:
        args->raw = true;
        return 0;
    case ZC_ARGS_JSON:
        args->json = true;
        return 0;
    case ZC_ARGS_ACK:
        args->ack = true;
        return 0;
    case ZC_ARGS_NEED_SUB:
        args->need_sub = true;
        return 0;
    case ZC_ARGS_NO_REPLAY:
        args->no_replay = true;
        return 0;
    case ZC_ARGS_VERBOSE:
        args->verbose = true;
        return 0;
    case ZC_ARGS_HUB:
        args->hub = true;
        return 0;
    case ZC_ARGS_CLIENT:
        args->client = true;
        return 0;
    case ZC_ARGS_HELP:
        args->help = true;
        return 0;
    default:
        __builtin_unreachable();
    }
}

/* What getopt_long returned for an option: its row. */
static size_t row_of(int c)
{
    if (c >= LONG_ONLY)
        return (size_t)(c - LONG_ONLY);
    size_t i = 0;
    while (table[i].letter != c)
        i++;
    return i;
}

static int unknown(const char *verb, char **argv, int c)
{
    char letter[3] = {'-', (char)optopt, '\0'}, shown[200];
    const char *text = argv[optind - 1];
    if (c == '?' && strncmp(text, "--", 2) != 0)
        text = letter;
    zc_say_escape(shown, sizeof shown, text, strlen(text));
    return zc_say_usage(verb, c == ':' ? "option %s needs a value" : "unknown option %s", shown);
}

int zc_args_parse(int argc, char **argv, uint32_t known, struct zc_args *ret_args)
{
    char letters[2 * ZC_ARRAY_LEN(table) + 3];
    struct option longs[ZC_ARRAY_LEN(table) + 1];
    option_lists(known, letters, longs);
    *ret_args = (struct zc_args){.verb = argv[0], .wait_ms = -1, .timeout_ms = 1000, .retries = 3};
    ret_args->rest = calloc((size_t)argc, sizeof *ret_args->rest);
    if (ret_args->rest == NULL)
        return zc_say_fail(1, argv[0], NULL, "out of memory");
    opterr = 0;
    int c, rc = 0;
    while (rc == 0 && (c = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
        if (c == '?' || c == ':')
            rc = unknown(argv[0], argv, c);
        else if (c == 1)
            ret_args->rest[ret_args->rest_count++] = optarg;
        else
            rc = apply(ret_args, row_of(c), optarg);
    }
    while (rc == 0 && optind < argc)
        ret_args->rest[ret_args->rest_count++] = argv[optind++];
    return rc;
}

void zc_args_done(struct zc_args *args)
{
    free(args->rest);
    args->rest = NULL;
}

void zc_args_help(uint32_t known)
{
    for (size_t i = 0; i < ZC_ARRAY_LEN(table); i++) {
        if ((known & table[i].bit) == 0)
            continue;
        char left[64];
        snprintf(left, sizeof left, "%s%c%s--%s%s%s", table[i].letter ? "-" : " ",
                 table[i].letter ? table[i].letter : ' ', table[i].letter ? ", " : "  ",
                 table[i].name, table[i].value ? " " : "", table[i].value ? table[i].value : "");
        printf("  %-24s %s\n", left, table[i].help);
    }
}
