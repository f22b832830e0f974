/*
 * A hub in memory for unit tests, driven by frames and time: bus_* calls give JSON in, JSON out.
 * Each test runs three times: with messages that stay as they are, that are at rest as soon as
 * nobody waits for them, and all but one of them (see zmqc/rest.h).
 */
#ifndef ZC_TESTS_UNIT_BUS_H
#define ZC_TESTS_UNIT_BUS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/hub.h"
#include "test.h"
#include "zmqc/frame.h"

static struct zc_hub *bus_hub;
static struct zc_now bus_now = {{1000000000}, {1700000000000}};

__attribute__((constructor)) static void bus_rounds(void)
{
    test_rounds = 3;
}

static inline uint64_t bus_hot_messages(void)
{
    static const uint64_t hot[] = {1000, 0, 1};
    return hot[test_round];
}

static inline void bus_start(const struct zc_hub_config *config)
{
    uint8_t seed[32] = {1, 2, 3};
    struct zc_hub_config c = *config;
    c.hot_messages = bus_hot_messages();
    bus_hub = zc_hub_new(&c, seed, bus_now);
    struct zc_hub_event ev;
    while (zc_hub_event(bus_hub, bus_now, &ev))
        continue;
}

static inline void bus_end(void)
{
    zc_hub_free(bus_hub);
    bus_hub = NULL;
}

static inline struct zc_session *bus_attach(void)
{
    struct zc_peer peer = {"uid:7", "@", false};
    return zc_hub_attach(bus_hub, bus_now, &peer, NULL);
}

static void bus_send(struct zc_session *s, const char *json)
{
    size_t len = strlen(json);
    uint8_t *frame = malloc(ZC_FRAME_HEADER + len);
    zc_frame_header(frame, len);
    memcpy(frame + ZC_FRAME_HEADER, json, len);
    zc_hub_input(bus_hub, s, bus_now, frame, ZC_FRAME_HEADER + len);
    free(frame);
}

/* All output of s so far as frames' JSON, one a line; accepted by the "kernel" when `take`. */
static const char *bus_output(struct zc_session *s, bool take)
{
    static char text[1 << 20];
    static uint8_t raw[1 << 20];
    struct zc_slice slices[64];
    size_t n, len = 0, out = 0;
    zc_hub_output(bus_hub, s, slices, 64, &n);
    for (size_t i = 0; i < n; i++) {
        memcpy(raw + len, slices[i].data, slices[i].len);
        len += slices[i].len;
    }
    if (take)
        zc_hub_sent(bus_hub, s, bus_now, len);
    for (size_t pos = 0; pos < len;) {
        size_t size;
        if (zc_frame_peek(raw + pos, len - pos, &size) != ZC_FRAME_WHOLE)
            return "bad frame from the hub";
        memcpy(text + out, raw + pos + ZC_FRAME_HEADER, size - ZC_FRAME_HEADER);
        out += size - ZC_FRAME_HEADER;
        text[out++] = '\n';
        pos += size;
    }
    text[out] = '\0';
    return text;
}

static const char *bus_recv(struct zc_session *s)
{
    return bus_output(s, true);
}

static inline const char *bus_call(struct zc_session *s, const char *json)
{
    bus_send(s, json);
    return bus_recv(s);
}

static inline void bus_advance_ms(int64_t ms)
{
    bus_now.mono.ns += ms * ZC_NS_PER_MS;
    bus_now.wall.ms += ms;
    zc_hub_tick(bus_hub, bus_now);
}

/* What the hub says of s: ZC_HUB_CLOSE if it is among the events due, else ZC_HUB_OUTPUT. */
static inline enum zc_hub_event_kind bus_fate(struct zc_session *s)
{
    struct zc_hub_event ev;
    enum zc_hub_event_kind fate = ZC_HUB_OUTPUT;
    while (zc_hub_event(bus_hub, bus_now, &ev)) {
        if (ev.session == s && ev.kind == ZC_HUB_CLOSE)
            fate = ZC_HUB_CLOSE;
    }
    return fate;
}

#endif
