/* URLs of maps; see fetch_url.h. */
#include "host/fetch_url.h"

#include <stdio.h>
#include <string.h>

#include "tunnel/derpmap.h"

/* "host:port" or "[v6]:port" or without port. */
static bool split_authority(const char *text, size_t len, struct zc_fetch_url *ret)
{
    const char *end = text + len, *host = text, *host_end, *port;
    if (len > 0 && *text == '[') {
        host = text + 1;
        host_end = memchr(host, ']', len - 1);
        port = host_end != NULL ? host_end + 1 : NULL;
    } else {
        host_end = memchr(text, ':', len);
        host_end = host_end != NULL ? host_end : end;
        port = host_end;
    }
    if (host_end == NULL || host_end == host || (size_t)(host_end - host) >= sizeof(ret->host))
        return false;
    memcpy(ret->host, host, (size_t)(host_end - host));
    ret->host[host_end - host] = '\0';
    snprintf(ret->port, sizeof(ret->port), "%s", ret->tls ? "443" : "80");
    if (port == end)
        return true;
    size_t digits = (size_t)(end - port) - 1;
    if (*port != ':' || digits == 0 || digits >= sizeof(ret->port))
        return false;
    memcpy(ret->port, port + 1, digits);
    ret->port[digits] = '\0';
    return strspn(ret->port, "0123456789") == digits;
}

bool zc_fetch_url_parse(const char *text, struct zc_fetch_url *ret)
{
    ret->tls = strncmp(text, "https://", 8) == 0;
    if (!ret->tls && strncmp(text, "http://", 7) != 0)
        return false;
    const char *at = text + (ret->tls ? 8 : 7);
    size_t authority = strcspn(at, "/?#");
    const char *path = at + authority;
    size_t len = strcspn(path, "#");
    for (size_t i = 0; text[i] != '\0'; i++)
        if (text[i] <= ' ' || text[i] == 0x7f)
            return false;
    if (len + 2 > sizeof(ret->path) || !split_authority(at, authority, ret))
        return false;
    snprintf(ret->path, sizeof(ret->path), "%s%.*s", *path == '/' ? "" : "/", (int)len, path);
    return zc_derpmap_host_valid(ret->host);
}

bool zc_fetch_url_follow(struct zc_slice location, struct zc_fetch_url *at)
{
    char text[ZC_FETCH_URL_MAX];
    if (location.len == 0 || location.len >= sizeof(text))
        return false;
    memcpy(text, location.data, location.len);
    text[location.len] = '\0';
    if (text[0] != '/') {
        struct zc_fetch_url next;
        bool ok = zc_fetch_url_parse(text, &next) && (next.tls || !at->tls);
        if (ok)
            *at = next;
        return ok;
    }
    if (strcspn(text, " \t#") != location.len || text[1] == '/')
        return false;
    snprintf(at->path, sizeof(at->path), "%s", text);
    return true;
}
