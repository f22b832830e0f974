/*
 * Options by getopt_long, also after positional arguments, whatever POSIXLY_CORRECT says.
 */
#include "args.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/units.h"
#include "say.h"

#define LONG_ONLY 256 /* getopt values above all characters */

/* What becomes of a value. */
enum kind { FLAG, TEXT, DURATION, COUNT, SIZE, HEADER };

#define AT(member) offsetof(struct zc_args, member)

static const struct row {
    struct zc_args_row shown;
    enum kind kind;
    size_t at;    /* where in struct zc_args; HEADER: unused */
    uint64_t min; /* COUNT and SIZE: the smallest; DURATION: 1 for one that may not be 0 */
    uint64_t max; /* COUNT and SIZE; 0: any */
} table[] = {
    {{ZC_ARGS_LISTEN, "listen", 'l', "ADDR",
      "the bus: unix:///path, /path, ./path, tcp://host:port"},
     TEXT,
     AT(listen)},
    {{ZC_ARGS_NAME, "name", 0, "TEXT", "who we say we are; default the host name"}, TEXT, AT(name)},
    {{ZC_ARGS_CONTROL, "control", 0, "ADDR", "the hub's control socket"}, TEXT, AT(control)},
    {{ZC_ARGS_FILE, "file", 0, "FILE", "read the payload from FILE"}, TEXT, AT(file)},
    {{ZC_ARGS_LINES, "lines", 0, NULL, "each line is a message"}, FLAG, AT(lines)},
    {{ZC_ARGS_HEADER, "header", 'H', "KEY=VALUE", "add a header; may be repeated"}, HEADER, 0},
    {{ZC_ARGS_ID, "id", 0, "TEXT", "id of the message"}, TEXT, AT(id)},
    {{ZC_ARGS_DELAY, "delay", 0, "DUR", "visible only after DUR"}, DURATION, AT(delay_ms)},
    {{ZC_ARGS_TTL, "ttl", 0, "DUR", "dropped after DUR"}, DURATION, AT(ttl_ms)},
    {{ZC_ARGS_IF_CONSUMER, "if-consumer", 0, NULL, "only if somebody waits on it (else exit 4)"},
     FLAG,
     AT(if_consumer)},
    {{ZC_ARGS_FOLLOW, "follow", 0, NULL, "go on until the hub or the reader stops"},
     FLAG,
     AT(follow)},
    {{ZC_ARGS_JOBS, "jobs", 'j', "N", "commands at a time; default 1"}, COUNT, AT(jobs), 1, 1000},
    {{ZC_ARGS_REPLY, "reply", 0, NULL, "the command's output answers the request"},
     FLAG,
     AT(reply)},
    {{ZC_ARGS_COUNT, "count", 0, "N", "stop after N"}, COUNT, AT(count), 1},
    {{ZC_ARGS_SIZE, "size", 0, "SIZE", "bytes of a payload; default 100"},
     SIZE,
     AT(size),
     0,
     1 << 20},
    {{ZC_ARGS_INTERVAL, "interval", 0, "DUR", "time between two looks; default 1s"},
     DURATION,
     AT(interval_ms),
     1},
    {{ZC_ARGS_RAW, "raw", 0, NULL, "add no newline to the payload"}, FLAG, AT(raw)},
    {{ZC_ARGS_WAIT, "wait", 0, "DUR", "give up when nothing came for DUR (exit 3)"},
     DURATION,
     AT(wait_ms)},
    {{ZC_ARGS_JSON, "json", 0, NULL, "print JSON, one object a line"}, FLAG, AT(json)},
    {{ZC_ARGS_LEASE, "lease", 0, "DUR", "lease asked for; default 60s"}, DURATION, AT(lease_ms)},
    {{ZC_ARGS_ACK, "ack", 0, NULL, "acknowledge the message at the end"}, FLAG, AT(ack)},
    {{ZC_ARGS_NEED_SUB, "need-sub", 0, NULL, "exit 4 when no subscription matched"},
     FLAG,
     AT(need_sub)},
    {{ZC_ARGS_NO_REPLAY, "no-replay", 0, NULL, "skip the last values; only what comes from now on"},
     FLAG,
     AT(no_replay)},
    {{ZC_ARGS_FILTER, "filter", 0, "LIST", "senders: `a,b` only these, `!a` not this one"},
     TEXT,
     AT(filter)},
    {{ZC_ARGS_TIMEOUT, "timeout", 0, "DUR", "time for one attempt; default 1s"},
     DURATION,
     AT(timeout_ms)},
    {{ZC_ARGS_RETRIES, "retries", 0, "N", "attempts; default 3"}, COUNT, AT(retries)},
    {{ZC_ARGS_VERBOSE, "verbose", 'v', NULL, "print the round trip and the path too"},
     FLAG,
     AT(verbose)},
    {{ZC_ARGS_HUB, "hub", 0, NULL, "for a hub: with a pre-shared key"}, FLAG, AT(hub)},
    {{ZC_ARGS_CLIENT, "client", 0, NULL, "for a spoke; the default"}, FLAG, AT(client)},
    {{ZC_ARGS_HELP, "help", 'h', NULL, "this help"}, FLAG, AT(help)},
};

/* Builds what getopt_long wants. letters has room for all. */
static void option_lists(uint32_t known, char *letters, struct option *longs)
{
    *letters++ = '-'; /* positional arguments are returned in order */
    *letters++ = ':'; /* a missing value is told apart */
    for (size_t i = 0; i < ZC_ARRAY_LEN(table); i++) {
        if ((known & table[i].shown.bit) == 0)
            continue;
        int has_arg = table[i].shown.value != NULL ? required_argument : no_argument;
        *longs++ = (struct option){table[i].shown.name, has_arg, NULL, LONG_ONLY + (int)i};
        if (table[i].shown.letter == 0)
            continue;
        *letters++ = table[i].shown.letter;
        if (table[i].shown.value != NULL)
            *letters++ = ':';
    }
    *letters = '\0';
    *longs = (struct option){0};
}

static int bad_value(const struct zc_args *args, const struct row *r, const char *value,
                     const char *want)
{
    char shown[200];
    zc_say_escape(shown, sizeof shown, value, strlen(value));
    return zc_say_usage(args->verb, "--%s %s: want %s", r->shown.name, shown, want);
}

static int duration(const struct zc_args *args, const struct row *r, const char *value,
                    int64_t *ret_ms)
{
    int64_t ms;
    if (zc_units_duration_ms(value, &ms) != 0 || ms < (int64_t)r->min)
        return bad_value(args, r, value, "a duration such as 5s, 300ms, 1m30s or 2");
    *ret_ms = ms;
    return 0;
}

static int number(const struct zc_args *args, const struct row *r, const char *value,
                  uint64_t *ret_number)
{
    uint64_t n;
    char want[64] = "a number";
    int err = r->kind == SIZE ? zc_units_bytes(value, &n) : zc_units_count(value, &n);
    if (r->kind == SIZE)
        snprintf(want, sizeof want, "a size of at most %" PRIu64 " bytes, such as 64k", r->max);
    else if (r->max > 0)
        snprintf(want, sizeof want, "a number from %" PRIu64 " to %" PRIu64, r->min, r->max);
    else if (r->min > 0)
        snprintf(want, sizeof want, "a number from %" PRIu64, r->min);
    if (err != 0 || n < r->min || (r->max > 0 && n > r->max))
        return bad_value(args, r, value, want);
    *ret_number = n;
    return 0;
}

static int header(struct zc_args *args, const struct row *r, const char *value)
{
    const char *eq = strchr(value, '=');
    if (eq == NULL || eq == value)
        return bad_value(args, r, value, "KEY=VALUE");
    if (args->headers_count == ZC_ARGS_HEADERS_MAX)
        return zc_say_usage(args->verb, "too many headers: at most %d", ZC_ARGS_HEADERS_MAX);
    for (size_t k = 0; k < args->headers_count; k++)
        if (args->headers[k].key_len == (size_t)(eq - value) &&
            memcmp(args->headers[k].key, value, (size_t)(eq - value)) == 0)
            return bad_value(args, r, value, "each KEY once");
    args->headers[args->headers_count++] =
        (struct zmqcat_header){value, (size_t)(eq - value), eq + 1, strlen(eq + 1)};
    return 0;
}

static int apply(struct zc_args *args, const struct row *r, const char *value)
{
    char *at = (char *)args + r->at;
    switch (r->kind) {
    case FLAG:
        *(bool *)at = true;
        return 0;
    case TEXT:
        *(const char **)(void *)at = value;
        return 0;
    case DURATION:
        return duration(args, r, value, (int64_t *)(void *)at);
    case COUNT:
    case SIZE:
        return number(args, r, value, (uint64_t *)(void *)at);
    case HEADER:
        return header(args, r, value);
    }
    __builtin_unreachable();
}

/* What getopt_long returned for an option: its row. */
static size_t row_of(int c)
{
    if (c >= LONG_ONLY)
        return (size_t)(c - LONG_ONLY);
    size_t i = 0;
    while (table[i].shown.letter != c)
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
    *ret_args = (struct zc_args){.verb = argv[0],
                                 .wait_ms = -1,
                                 .timeout_ms = 1000,
                                 .retries = 3,
                                 .jobs = 1,
                                 .interval_ms = 1000,
                                 .size = 100};
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
            rc = apply(ret_args, &table[row_of(c)], optarg);
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
        if ((known & table[i].shown.bit) == 0)
            continue;
        char left[64];
        snprintf(left, sizeof left, "%s%c%s--%s%s%s", table[i].shown.letter ? "-" : " ",
                 table[i].shown.letter ? table[i].shown.letter : ' ',
                 table[i].shown.letter ? ", " : "  ", table[i].shown.name,
                 table[i].shown.value ? " " : "", table[i].shown.value ? table[i].shown.value : "");
        printf("  %-24s %s\n", left, table[i].shown.help);
    }
}

bool zc_args_row(size_t i, struct zc_args_row *ret_row)
{
    if (i >= ZC_ARRAY_LEN(table))
        return false;
    *ret_row = table[i].shown;
    return true;
}
