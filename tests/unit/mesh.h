/*
 * Hubs and spokes over a relay in memory, with local clients, moved a millisecond at a time. The
 * parts of a host that matter are here: the relay's stream, splices, forwarded ports.
 */
#ifndef ZC_TESTS_UNIT_MESH_H
#define ZC_TESTS_UNIT_MESH_H

#include "test.h"

#include "node/hub.h"
#include "node/spoke.h"
#include "relay.h"
#include "tunnel/token.h"
#include "tunnel/tunnel.h"
#include "zmqc/frame.h"

#define MESH_NODES 64
#define MESH_LINES 256

/* A program at a local socket of a node: of a spoke (splice), or of a hub (session). Also the local
 * service of a forwarded port. */
struct local {
    struct node *node;
    struct zc_splice *splice;
    struct zc_session *session;
    struct zc_buf out; /* what it wants to send */
    struct zc_buf got;
    bool shut; /* it sends nothing more after out */
    bool shut_done;
    bool slow; /* it reads nothing */
    bool eof, closed, reset;
    bool service; /* of a forwarded port: echoes */
    uint16_t port;
};

struct node {
    struct zc_hub *hub;
    struct zc_secret key;
    struct zc_key public;
    int conn;
    uint32_t online, lines, psks;
    char line[MESH_LINES][200];
    struct zc_secret psk; /* as last saved */
    const char *psk_why;  /* what saving answers */
    const char *reload_why, *revoke_why, *revoke_warning;
    uint32_t reloads, revokes, refusals;
    struct zc_key revoked, refused; /* the last one */
    struct local *services[64];
    uint32_t services_count;
    struct zc_mono dial_at; /* its dial fails then */
    bool refuse;            /* forwarded ports have no local service */
    bool stopped;
};

static struct relay mesh_relay;
static struct node mesh[MESH_NODES];
static uint32_t mesh_count;
static struct zc_now mesh_now;
static struct zc_derpmap_node mesh_relay_node;
static struct zc_secret mesh_psk;
static int64_t mesh_heartbeat_ms; /* of hubs that are started */
/* How all dials go. */
static enum {
    MESH_DIAL_WELL,
    MESH_DIAL_FAILS, /* after mesh_dial_ms, each time for another reason */
    MESH_DIAL_HANGS, /* no word */
    MESH_DIAL_MUTE,  /* the stream stands, and nothing comes */
} mesh_dial;
static int64_t mesh_dial_ms;
static uint32_t mesh_dials;

static inline void mesh_start(void)
{
    mesh_now = (struct zc_now){{1000 * ZC_NS_PER_S}, {1700000000000}};
    relay_init(&mesh_relay, 1);
    memset(mesh, 0, sizeof(mesh));
    mesh_count = 0;
    mesh_heartbeat_ms = 0;
    mesh_dial = MESH_DIAL_WELL;
    memset(mesh_psk.b, 0x77, sizeof(mesh_psk.b));
    memset(&mesh_relay_node, 0, sizeof(mesh_relay_node));
    strcpy(mesh_relay_node.name, "relay.example");
    strcpy(mesh_relay_node.host, "relay.example");
}

static inline struct node *mesh_node(uint8_t seed)
{
    struct node *n = &mesh[mesh_count++];
    struct zc_rng rng;
    uint8_t bytes[32] = {seed, 0x11};
    zc_rng_init(&rng, bytes);
    zc_x25519_generate(&rng, &n->key);
    zc_x25519_public(&n->key, &n->public);
    n->conn = -1;
    n->dial_at = ZC_NEVER;
    return n;
}

static inline void mesh_serve(struct node *n, struct zc_hub_tunnel_config more)
{
    struct zc_hub_config c;
    uint8_t seed[32] = {(uint8_t)(n - mesh), 1, (uint8_t)mesh_now.mono.ns};
    zc_hub_config_default(&c);
    more.private_key = &n->key;
    more.relays = &mesh_relay_node;
    more.relays_count = 1;
    more.clients_max = 4096;
    c.heartbeat_ms = mesh_heartbeat_ms;
    c.tunnel = &more;
    n->psk = more.psk != NULL ? *more.psk : (struct zc_secret){{0}};
    n->hub = zc_hub_new(&c, seed, mesh_now);
    n->stopped = false;
    CHECK(n->hub != NULL);
}

static inline struct node *mesh_hub(uint8_t seed)
{
    static const uint16_t forward[] = {8081};
    struct node *n = mesh_node(seed);
    mesh_serve(
        n, (struct zc_hub_tunnel_config){.psk = &mesh_psk, .forward = forward, .forward_count = 1});
    return n;
}

static inline void mesh_join(struct node *n, const struct node *hub, const struct zc_secret *psk)
{
    struct zc_tunnel_status st;
    zc_tunnel_status(zc_hub_tunnel(hub->hub), &st);
    struct zc_spoke_target t = {.node_key = st.node_key,
                                .disco_key = st.disco_key,
                                .psk = psk,
                                .relays = &mesh_relay_node,
                                .relays_count = 1};
    CHECK_INT(zc_spoke_join(n->hub, mesh_now, &t), 0);
}

/* A spoke without a token. */
static inline struct node *mesh_spoke(uint8_t seed)
{
    struct node *n = mesh_node(seed);
    struct zc_spoke_config c;
    uint8_t bytes[32] = {seed, 2};
    zc_spoke_config_default(&c);
    c.private_key = &n->key;
    n->hub = zc_spoke_new(&c, bytes, mesh_now);
    CHECK(n->hub != NULL);
    return n;
}

static inline struct node *mesh_joined(uint8_t seed, const struct node *hub)
{
    struct node *n = mesh_spoke(seed);
    mesh_join(n, hub, &mesh_psk);
    return n;
}

static inline struct local *mesh_local(struct node *n)
{
    struct local *l = calloc(1, sizeof(*l));
    l->node = n;
    return l;
}

/* A client of a spoke's bus, or of one of its forwarded ports. */
static inline struct local *mesh_client(struct node *n, uint16_t port)
{
    struct local *l = mesh_local(n);
    l->splice = zc_spoke_attach(n->hub, mesh_now, port, l);
    CHECK(l->splice != NULL);
    return l;
}

/* A client, or the administrator, at the node itself. */
static inline struct local *mesh_session(struct node *n, bool control)
{
    struct local *l = mesh_local(n);
    struct zc_peer peer = {"uid:7", "@", control};
    l->session = zc_hub_attach(n->hub, mesh_now, &peer, l);
    CHECK(l->session != NULL);
    return l;
}

static inline void mesh_leave(struct local *l, bool reset)
{
    if (l->splice != NULL)
        zc_splice_detach(l->splice, mesh_now, reset);
    if (l->session != NULL)
        zc_hub_detach(l->node->hub, l->session, mesh_now);
    l->splice = NULL;
    l->session = NULL;
    l->closed = true;
}

static inline void mesh_free(struct local *l)
{
    if (!l->closed && l->node->hub != NULL)
        mesh_leave(l, true);
    zc_buf_done(&l->out);
    zc_buf_done(&l->got);
    free(l);
}

static inline void mesh_write(struct local *l, const void *data, size_t len)
{
    relay_put(&l->out, data, len);
}

static inline void mesh_send(struct local *l, const char *json)
{
    uint8_t head[ZC_FRAME_HEADER];
    zc_frame_header(head, strlen(json));
    mesh_write(l, head, sizeof(head));
    mesh_write(l, json, strlen(json));
}

static inline size_t mesh_slices(const struct local *l, struct zc_slice *s)
{
    size_t n = 0;
    if (l->splice != NULL)
        return zc_splice_output(l->splice, s);
    zc_hub_output(l->node->hub, l->session, s, 3, &n);
    return n;
}

/* Reads and writes what is possible, as its socket would. */
static inline void mesh_run_local(struct local *l)
{
    struct zc_slice s[ZC_SPLICE_SLICES];
    size_t n, total;
    while (!l->closed && !l->slow && (n = mesh_slices(l, s)) > 0) {
        total = 0;
        for (size_t i = 0; i < n; i++) {
            relay_put(&l->got, s[i].data, s[i].len);
            if (l->service)
                relay_put(&l->out, s[i].data, s[i].len);
            total += s[i].len;
        }
        if (l->splice != NULL)
            zc_splice_sent(l->splice, mesh_now, total);
        else
            zc_hub_sent(l->node->hub, l->session, mesh_now, total);
    }
    while (!l->closed && l->out.len > 0 &&
           (l->splice != NULL ? zc_splice_wants_input(l->splice)
                              : zc_hub_wants_input(l->node->hub, l->session))) {
        size_t part = l->out.len < 65536 ? l->out.len : 65536;
        if (l->splice != NULL)
            zc_splice_input(l->splice, mesh_now, l->out.data, part);
        else
            zc_hub_input(l->node->hub, l->session, mesh_now, l->out.data, part);
        zc_buf_consume(&l->out, part);
    }
    if (!l->closed && l->shut && !l->shut_done && l->out.len == 0) {
        l->shut_done = true;
        if (l->splice != NULL)
            zc_splice_eof(l->splice, mesh_now);
        else
            zc_hub_eof(l->node->hub, l->session, mesh_now);
    }
}

static inline void mesh_open(struct node *n, const struct zc_hub_event *ev)
{
    if (n->refuse) {
        zc_splice_detach(ev->splice, mesh_now, false);
        return;
    }
    struct local *l = mesh_local(n);
    l->service = true;
    l->splice = ev->splice;
    l->port = ev->port;
    zc_splice_set_data(ev->splice, l);
    n->services[n->services_count++] = l;
}

static inline void mesh_event(struct node *n, const struct zc_hub_event *ev)
{
    struct local *l = ev->data;
    switch (ev->kind) {
    case ZC_HUB_LOG:
    case ZC_HUB_TRACE:
        if (n->lines < MESH_LINES)
            snprintf(n->line[n->lines], sizeof(n->line[0]), "%s", ev->text);
        n->lines++;
        break;
    case ZC_HUB_ONLINE:
        n->online++;
        break;
    case ZC_HUB_PSK:
        n->psks++;
        if (n->psk_why == NULL)
            n->psk = *ev->psk;
        zc_hub_psk_saved(n->hub, mesh_now, n->psk_why);
        break;
    case ZC_HUB_RELOAD:
        n->reloads++;
        zc_hub_reloaded(n->hub, mesh_now, n->reload_why);
        break;
    case ZC_HUB_REVOKE:
        n->revokes++;
        n->revoked = ev->key;
        zc_hub_revoked(n->hub, mesh_now, n->revoke_why, n->revoke_warning);
        break;
    case ZC_HUB_REFUSED:
        n->refusals++;
        n->refused = ev->key;
        break;
    case ZC_HUB_SPLICE_OPEN:
        mesh_open(n, ev);
        break;
    case ZC_HUB_SPLICE_EOF:
        l->eof = true;
        if (l->service)
            l->shut = true;
        break;
    case ZC_HUB_SPLICE_CLOSE:
        l->reset = ev->reset;
        mesh_leave(l, false);
        break;
    case ZC_HUB_OUTPUT:
    case ZC_HUB_SPLICE_OUTPUT:
        mesh_run_local(l);
        break;
    case ZC_HUB_CLOSE:
        mesh_run_local(l);
        mesh_leave(l, false);
        break;
    case ZC_HUB_STOPPED:
        n->stopped = true;
        break;
    default:
        break;
    }
}

static inline void mesh_events(struct node *n)
{
    struct zc_hub_event ev;
    while (zc_hub_event(n->hub, mesh_now, &ev))
        mesh_event(n, &ev);
}

static inline void mesh_hangup(struct node *n)
{
    if (n->conn >= 0)
        relay_close(&mesh_relay, n->conn);
    n->conn = -1;
    n->dial_at = ZC_NEVER;
}

static inline void mesh_dialled(struct node *n, struct zc_tunnel *t)
{
    n->conn = mesh_dial == MESH_DIAL_WELL ? relay_open(&mesh_relay) : -1;
    if (mesh_dial == MESH_DIAL_FAILS)
        n->dial_at = zc_mono_add_ms(mesh_now.mono, mesh_dial_ms);
    else if (n->conn >= 0 || mesh_dial == MESH_DIAL_MUTE)
        zc_tunnel_relay_started(t, mesh_now, false);
    else if (mesh_dial == MESH_DIAL_WELL)
        zc_tunnel_relay_lost(t, mesh_now, "connection refused");
}

static inline void mesh_turn(struct node *n)
{
    static uint8_t buf[65536];
    struct zc_derp_dial_try dial;
    if (zc_hub_deadline(n->hub).ns <= mesh_now.mono.ns)
        zc_hub_tick(n->hub, mesh_now);
    for (uint32_t i = 0; i < n->services_count; i++)
        mesh_run_local(n->services[i]);
    mesh_events(n);
    struct zc_tunnel *t = zc_hub_tunnel(n->hub);
    if (t == NULL)
        return;
    if (n->conn >= 0 && !mesh_relay.conns[n->conn].open) {
        n->conn = -1;
        zc_tunnel_relay_lost(t, mesh_now, "the relay closed the connection");
    }
    if (zc_tunnel_relay_hangup(t))
        mesh_hangup(n);
    if (zc_tunnel_relay_dial(t, mesh_now, &dial))
        mesh_dialled(n, t);
    if (n->dial_at.ns <= mesh_now.mono.ns) {
        char why[40];
        n->dial_at = ZC_NEVER;
        snprintf(why, sizeof(why), "10.0.0.%u port 443: no", ++mesh_dials % 200);
        zc_tunnel_relay_lost(t, mesh_now, why);
    }
    mesh_events(n);
    size_t len = n->conn < 0 ? 0 : zc_tunnel_relay_output(t, mesh_now, buf, 20000);
    if (len > 0)
        relay_input(&mesh_relay, n->conn, buf, len);
}

static inline void mesh_receive(struct node *n)
{
    size_t len, total = 0;
    uint8_t *data;
    while (total < 20000 && n->conn >= 0 &&
           (data = relay_output(&mesh_relay, n->conn, &len)) != NULL) {
        zc_tunnel_relay_input(zc_hub_tunnel(n->hub), mesh_now, data, len);
        free(data);
        total += len;
    }
    mesh_events(n);
}

static inline void mesh_step(void)
{
    mesh_now.mono.ns += ZC_NS_PER_MS;
    mesh_now.wall.ms++;
    for (uint32_t i = 0; i < mesh_count; i++) {
        if (mesh[i].hub != NULL)
            mesh_turn(&mesh[i]);
    }
    for (uint32_t i = 0; i < mesh_count; i++) {
        if (mesh[i].hub != NULL)
            mesh_receive(&mesh[i]);
    }
}

static inline void mesh_run(int64_t ms)
{
    while (ms-- > 0)
        mesh_step();
}

/* Runs local and the mesh until cond holds, at most limit ms; how long it took, or -1. */
#define MESH_UNTIL(local, cond, limit)                                                             \
    __extension__({                                                                                \
        int64_t took_ = 0;                                                                         \
        mesh_run_local(local);                                                                     \
        while (!(cond) && took_ < (limit)) {                                                       \
            mesh_step();                                                                           \
            mesh_run_local(local);                                                                 \
            took_++;                                                                               \
        }                                                                                          \
        (cond) ? took_ : -1;                                                                       \
    })

/* The next whole frame that l got, as text, heartbeats left out; "" when there is none within limit
 * ms. */
static inline const char *mesh_recv(struct local *l, int64_t limit)
{
    static char text[1 << 21];
    size_t size;
    do {
        if (MESH_UNTIL(l, zc_frame_peek(l->got.data, l->got.len, &size) == ZC_FRAME_WHOLE, limit) <
            0)
            return "";
        memcpy(text, l->got.data + ZC_FRAME_HEADER, size - ZC_FRAME_HEADER);
        text[size - ZC_FRAME_HEADER] = '\0';
        zc_buf_consume(&l->got, size);
    } while (strcmp(text, "{\"v\":1,\"op\":\"ping\"}") == 0);
    return text;
}

static inline const char *mesh_call(struct local *l, const char *json)
{
    mesh_send(l, json);
    return mesh_recv(l, 5000);
}

/* The process is gone, without a word. */
static inline void mesh_kill(struct node *n)
{
    for (uint32_t i = 0; i < n->services_count; i++)
        mesh_free(n->services[i]);
    n->services_count = 0;
    mesh_hangup(n);
    zc_hub_free(n->hub);
    n->hub = NULL;
}

static inline void mesh_end(void)
{
    for (uint32_t i = 0; i < mesh_count; i++) {
        for (uint32_t j = 0; j < mesh[i].lines && j < MESH_LINES; j++)
            CHECK(strstr(mesh[i].line[j], "each other's") == NULL);
        if (mesh[i].hub != NULL)
            mesh_kill(&mesh[i]);
    }
    relay_done(&mesh_relay);
}

static inline bool mesh_has(const struct node *n, const char *part)
{
    for (uint32_t i = 0; i < n->lines && i < MESH_LINES; i++) {
        if (strstr(n->line[i], part) != NULL)
            return true;
    }
    return false;
}

#endif
