/*
 * For tests of the client library: a hub that follows a script, at the other end of a socket pair.
 */
#ifndef ZC_TESTS_UNIT_SCRIPTED_HUB_H
#define ZC_TESTS_UNIT_SCRIPTED_HUB_H

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "client/bus.h"
#include "client/client.h"
#include "client/zmqcat.h"
#include "test.h"

#define JSON_MAX (3u << 20)

/* The scripted hub: runs in a thread of its own until its script ends, then closes. */
struct hub {
    int fd;
    void (*script)(struct hub *h);
    char json[JSON_MAX]; /* the last frame read */
    char id[128];        /* its id */
};

static bool read_bytes(int fd, void *data, size_t len)
{
    uint8_t *p = data;
    while (len > 0) {
        ssize_t n = read(fd, p, len);
        if (n <= 0)
            return false;
        p += n;
        len -= (size_t)n;
    }
    return true;
}

/* The next frame; false at the end. */
static bool hub_read(struct hub *h)
{
    uint8_t head[8];
    if (!read_bytes(h->fd, head, 8))
        return false;
    CHECK(memcmp(head, "ZMQC", 4) == 0);
    size_t len = (size_t)head[4] << 24 | (size_t)head[5] << 16 | (size_t)head[6] << 8 | head[7];
    CHECK(len > 0 && len < JSON_MAX);
    if (!read_bytes(h->fd, h->json, len))
        return false;
    h->json[len] = '\0';
    h->id[0] = '\0';
    const char *id = strstr(h->json, "\"id\":\"");
    if (id != NULL)
        sscanf(id, "\"id\":\"%127[^\"]", h->id);
    return true;
}

static inline bool hub_saw(const struct hub *h, const char *text)
{
    return strstr(h->json, text) != NULL;
}

static void hub_write(struct hub *h, const void *data, size_t len)
{
    const uint8_t *p = data;
    while (len > 0) {
        ssize_t n = send(h->fd, p, len, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        p += n;
        len -= (size_t)n;
    }
}

__attribute__((format(printf, 2, 3))) static void hub_send(struct hub *h, const char *format, ...)
{
    static char json[65536];
    va_list list;
    va_start(list, format);
    int len = vsnprintf(json + 8, sizeof json - 8, format, list);
    va_end(list);
    memcpy(json, "ZMQC", 4);
    for (int i = 0; i < 4; i++)
        json[4 + i] = (char)(len >> (24 - 8 * i));
    hub_write(h, json, (size_t)len + 8);
}

static inline void hub_hello(struct hub *h)
{
    CHECK(hub_read(h));
    CHECK(hub_saw(h, "\"op\":\"hello\""));
    hub_send(h, "{\"v\":1,\"op\":\"ok\",\"id\":\"%s\",\"from\":\"me\"}", h->id);
}

static inline void hub_ok(struct hub *h)
{
    hub_send(h, "{\"v\":1,\"op\":\"ok\",\"id\":\"%s\"}", h->id);
}

static void *hub_thread(void *data)
{
    struct hub *h = data;
    h->script(h);
    close(h->fd);
    return NULL;
}

static struct hub hub;
static pthread_t hub_runs;
static struct zmqcat *bus;

/* Starts the script and connects to it; the result of the open. */
static inline int start(void (*script)(struct hub *h))
{
    int pair[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    fcntl(pair[0], F_SETFL, O_NONBLOCK);
    hub.fd = pair[1];
    hub.script = script;
    CHECK(pthread_create(&hub_runs, NULL, hub_thread, &hub) == 0);
    return zc_client_attach(pair[0], "me", &bus);
}

/* Ends the connection and waits for the script. */
static inline void stop(void)
{
    zmqcat_free(bus);
    bus = NULL;
    pthread_join(hub_runs, NULL);
}

static inline int put(const char *text)
{
    return zmqcat_put(bus, "jobs", 4, text, strlen(text), NULL);
}

static inline bool is(const char *data, size_t len, const char *want)
{
    return len == strlen(want) && memcmp(data, want, len) == 0;
}

static inline bool payload_is(const struct zmqcat_msg *m, const char *want)
{
    return is(m->payload, m->payload_len, want);
}

static inline int64_t now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

#endif
