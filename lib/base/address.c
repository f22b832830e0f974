/*
 * Address texts. The forms and their precedence follow docs/man/zmqcat-hub.8. Deliberately absent:
 * look-ups, abstract sockets (they have no file mode to protect them), and an empty host, because
 * ":5555" silently means every interface in some programs and loopback in others.
 */
#include "base/address.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char WANT[] = "want unix://, tcp://, path, or host:port";

__attribute__((format(printf, 2, 3))) static int refuse(char why[ZC_ADDRESS_WHY_MAX],
                                                        const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why, ZC_ADDRESS_WHY_MAX, format, args);
    va_end(args);
    return ZC_EINVAL;
}

/* The rest of s after prefix, or NULL. */
static const char *after(const char *s, const char *prefix)
{
    size_t n = strlen(prefix);
    return strncmp(s, prefix, n) == 0 ? s + n : NULL;
}

static int parse_path(const char *path, struct zc_address *ret_address, char *why)
{
    size_t len = strlen(path);
    if (len == 0)
        return refuse(why, "the path is empty: write unix:///run/bus.sock");
    if (len > ZC_ADDRESS_PATH_MAX)
        return refuse(why,
                      "the path has %zu bytes, a unix socket takes at most %d: use a shorter one",
                      len, ZC_ADDRESS_PATH_MAX);
    memset(ret_address, 0, sizeof(*ret_address));
    ret_address->kind = ZC_ADDRESS_UNIX;
    memcpy(ret_address->path, path, len + 1);
    return 0;
}

static int parse_port(const char *text, uint16_t *ret_port, char *why)
{
    uint32_t port = 0;
    size_t len = strlen(text);
    bool digits = len > 0 && len <= 5;
    for (size_t i = 0; digits && i < len; i++) {
        digits = text[i] >= '0' && text[i] <= '9';
        port = port * 10 + (uint32_t)(text[i] - '0');
    }
    if (!digits || port > UINT16_MAX)
        return refuse(why, "invalid port: want a number from 0 to 65535");
    *ret_port = (uint16_t)port;
    return 0;
}

/* Characters of names and of numeric addresses; the rest is a mistake, or an attempt to break a
 * line of a log. */
static bool host_ok(const char *host, size_t len, bool bracketed)
{
    for (size_t i = 0; i < len; i++) {
        char c = host[i];
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
            c == '.' || c == '-' || c == '_')
            continue;
        if (bracketed && (c == ':' || c == '%'))
            continue;
        return false;
    }
    return true;
}

/* host:port. `scheme`: tcp:// came before, so it cannot be anything else. */
static int parse_tcp(const char *text, bool scheme, struct zc_address *ret_address, char *why)
{
    const char *host = text, *colon = strrchr(text, ':');
    bool bracketed = text[0] == '[';
    size_t host_len;
    if (bracketed) {
        const char *end = strchr(text, ']');
        if (end == NULL || end[1] != ':')
            return refuse(why, "want [address]:port");
        host = text + 1;
        host_len = (size_t)(end - host);
        colon = end + 1;
    } else if (colon == NULL) {
        return refuse(why, "%s", scheme ? "no port: want tcp://host:port" : WANT);
    } else {
        host_len = (size_t)(colon - text);
        if (memchr(host, ':', host_len) != NULL)
            return refuse(why, "an IPv6 address goes in brackets: [::1]:5555");
    }
    if (!host_ok(host, host_len, bracketed))
        return refuse(why, "%s", scheme ? "the host has characters that no host name has" : WANT);
    if (host_len == 0)
        return refuse(why, "no host: write 127.0.0.1:PORT, or 0.0.0.0:PORT for every interface");
    if (host_len > ZC_ADDRESS_HOST_MAX)
        return refuse(why, "the host has more than %d bytes", ZC_ADDRESS_HOST_MAX);
    uint16_t port = 0;
    int r = parse_port(colon + 1, &port, why);
    if (r < 0)
        return r;
    memset(ret_address, 0, sizeof(*ret_address));
    ret_address->kind = ZC_ADDRESS_TCP;
    memcpy(ret_address->host, host, host_len);
    ret_address->port = port;
    return 0;
}

int zc_address_parse(const char *text, struct zc_address *ret_address,
                     char ret_why[ZC_ADDRESS_WHY_MAX])
{
    const char *rest;
    if ((rest = after(text, "unix://")) != NULL)
        return parse_path(rest, ret_address, ret_why);
    if ((rest = after(text, "tcp://")) != NULL)
        return parse_tcp(rest, true, ret_address, ret_why);
    if (text[0] == '/' || after(text, "./") != NULL || after(text, "../") != NULL)
        return parse_path(text, ret_address, ret_why);
    if (strstr(text, "://") != NULL)
        return refuse(ret_why, "unknown scheme: %s", WANT);
    return parse_tcp(text, false, ret_address, ret_why);
}

void zc_address_text(const struct zc_address *a, char ret_text[ZC_ADDRESS_TEXT_MAX])
{
    bool v6 = strchr(a->host, ':') != NULL;
    if (a->kind == ZC_ADDRESS_UNIX)
        snprintf(ret_text, ZC_ADDRESS_TEXT_MAX, "unix://%s", a->path);
    else
        snprintf(ret_text, ZC_ADDRESS_TEXT_MAX, v6 ? "tcp://[%s]:%u" : "tcp://%s:%u", a->host,
                 (unsigned)a->port);
}
