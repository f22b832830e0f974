/* token and rotate: the hub's join token, by its control socket. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/json.h"
#include "clock.h"
#include "open.h"
#include "out.h"
#include "say.h"
#include "verbs.h"

#define TOKEN_FILE "/var/lib/zmqcat/token"
#define RELAY_MS 5000

static int print_line(const struct zc_args *args, struct zc_slice text)
{
    if (fwrite(text.data, 1, text.len, stdout) == text.len && putchar('\n') != EOF &&
        fflush(stdout) == 0)
        return 0;
    return zc_say_fail(1, args->verb, NULL, "standard output cannot be written");
}

/* Prints the member `token` of the answer. */
static int print_token(const struct zc_args *args, const char *json, size_t len)
{
    struct zc_buf copy = {0};
    struct zc_slice key;
    struct zc_json_value v;
    bool first = true, bad = false;
    int status = -1;
    if (zc_buf_append(&copy, json, len) != 0)
        return zc_say_fail(1, args->verb, NULL, "out of memory");
    struct zc_json j;
    zc_json_init(&j, copy.data, copy.len);
    if (zc_json_eat(&j, '{'))
        while (status < 0 && zc_json_member(&j, &first, 1, &key, &bad, &v))
            if (zc_slice_is(key, "token") && v.type == ZC_JSON_STRING)
                status = print_line(args, v.text);
    zc_buf_done(&copy);
    if (status >= 0)
        return status;
    return zc_say_fail(1, args->verb, NULL, "the hub's answer is not readable");
}

/* A hub that has just been started is given until then to hear of its relay. */
static int query(const struct zc_args *args, struct zmqcat *bus, int64_t until_ms,
                 const char **ret_json, size_t *ret_len)
{
    const struct timespec pause = {.tv_nsec = 200 * 1000 * 1000};
    for (;;) {
        int rc = zmqcat_query(bus, args->verb, NULL, 0, NULL, ret_json, ret_len);
        if (rc != ZMQCAT_ERR || strcmp(zmqcat_error_code(bus), "unavailable") != 0 ||
            zc_clock_ms() >= until_ms)
            return rc;
        nanosleep(&pause, NULL);
    }
}

static int ask(const struct zc_args *args, struct zmqcat *bus, int64_t wait_ms)
{
    const char *json;
    size_t len;
    int rc = query(args, bus, zc_clock_ms() + wait_ms, &json, &len);
    if (rc == ZMQCAT_ERR && strcmp(zmqcat_error_code(bus), "unknown_op") == 0)
        return zc_say_fail(1, args->verb, NULL,
                           "there is no token here: this is a spoke, or a hub that serves its own "
                           "host only (--local): ask at the hub that spokes join");
    if (rc == ZMQCAT_REFUSED)
        return zc_say_fail(4, args->verb, NULL, zmqcat_error_text(bus));
    return rc != ZMQCAT_OK ? zc_say_bus(args, bus, rc) : print_token(args, json, len);
}

/* What the system's hub has written. False: it cannot be read, nothing was printed. */
static bool print_file(const struct zc_args *args, int *ret_status)
{
    char line[8192];
    FILE *f = fopen(TOKEN_FILE, "re");
    if (f == NULL)
        return false;
    bool good = fgets(line, sizeof line, f) != NULL;
    fclose(f);
    size_t len = good ? strcspn(line, "\r\n") : 0;
    if (len > 0)
        *ret_status = print_line(args, zc_slice(line, len));
    return len > 0;
}

int zc_token_show(const struct zc_args *args)
{
    struct zmqcat *bus = NULL;
    int status;
    /* Without a word when there is another way. */
    bool asked = args->control != NULL || args->listen != NULL;
    if (!asked && zmqcat_open_control(NULL, NULL, &bus) != ZMQCAT_OK) {
        zmqcat_free(bus);
        bus = NULL;
        if (print_file(args, &status))
            return status;
    }
    status = bus != NULL ? 0 : zc_open_control(args, &bus);
    if (status == 0)
        status = ask(args, bus, RELAY_MS);
    zmqcat_free(bus);
    return status;
}

int zc_token_rotate(const struct zc_args *args)
{
    struct zmqcat *bus = NULL;
    int status = zc_out_usable(); /* a new token that is not printed would be lost */
    if (status == 0)
        status = zc_open_control(args, &bus);
    if (status == 0)
        status = ask(args, bus, 0);
    zmqcat_free(bus);
    return status;
}
