/*
 * A DERP relay for tests and `make quickstart`: one thread, a certificate of its own, and the
 * behaviour of the real one that clients can see: queues of 32 packets for each receiver that drop
 * the oldest, PeerGone, ping, the newest connection of a key wins.
 *
 *   relay --dir DIR [--address A] [--port N]   DIR/relay.pem  key and certificate, made once
 *                                              DIR/map.json   the DERP map that names it, pinned
 *
 * The IPv4 address is 127.0.0.1 without the option. Prints `relay at ADDRESS:PORT` when it listens.
 * SIGSTOP makes it a black hole. Deliberately absent: mesh, STUN, rate limits, health and restart
 * notes, other HTTP paths.
 */
#define _GNU_SOURCE /* accept4 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sodium.h>

#include "base/buf.h"
#include "crypto/box.h"
#include "crypto/secret.h"
#include "crypto/x25519.h"
#include "relay_cert.h"

#define CLIENTS_MAX 512
#define QUEUE_MAX 32
#define FRAME_MAX (64 * 1024 + 64)
#define KEEP_ALIVE_MS 60000

enum state { TLS, HTTP, LOGIN, UP };

struct frame {
    size_t len;
    uint8_t data[];
};

struct client {
    int fd; /* -1: free */
    SSL *ssl;
    enum state state;
    struct zc_key key;
    struct zc_buf in;
    struct zc_buf out;                  /* control frames, and the packet that is being written */
    struct frame *queues[2][QUEUE_MAX]; /* disco, other */
    int queued[2];
    uint64_t active;         /* the order in which keys were last heard */
    bool heard[CLIENTS_MAX]; /* has got packets of that slot */
    struct zc_buf told;      /* keys whose leaving it was told */
};

static struct client clients[CLIENTS_MAX];
static struct zc_secret relay_private;
static struct zc_key relay_public;
static uint64_t activity;

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void die(const char *what)
{
    fprintf(stderr, "relay: %s: %s\n", what, errno != 0 ? strerror(errno) : "failed");
    exit(1);
}

static void append(struct zc_buf *b, const void *data, size_t len)
{
    if (zc_buf_append(b, data, len) != 0)
        die("memory");
}

static void head(uint8_t *p, uint8_t type, size_t len)
{
    p[0] = type;
    for (int i = 0; i < 4; i++)
        p[1 + i] = (uint8_t)(len >> (24 - 8 * i));
}

static void control(struct client *c, uint8_t type, const void *payload, size_t len)
{
    uint8_t h[5];
    head(h, type, len);
    append(&c->out, h, sizeof(h));
    if (len > 0)
        append(&c->out, payload, len);
}

static void peer_gone(struct client *to, const struct zc_key *key, uint8_t reason)
{
    uint8_t payload[33];
    memcpy(payload, key->b, 32);
    payload[32] = reason;
    control(to, 0x08, payload, sizeof(payload));
}

/* As derper does: once for each key. */
static void peer_left(struct client *to, const struct zc_key *key)
{
    for (size_t at = 0; at < to->told.len; at += sizeof(key->b))
        if (memcmp(to->told.data + at, key->b, sizeof(key->b)) == 0)
            return;
    append(&to->told, key->b, sizeof(key->b));
    peer_gone(to, key, 0);
}

static void hang_up(struct client *c)
{
    size_t slot = (size_t)(c - clients);
    SSL_free(c->ssl);
    close(c->fd);
    for (int q = 0; q < 2; q++)
        for (int i = 0; i < c->queued[q]; i++)
            free(c->queues[q][i]);
    zc_buf_done(&c->in);
    zc_buf_done(&c->out);
    zc_buf_done(&c->told);
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        if (clients[i].fd >= 0 && clients[i].heard[slot] && &clients[i] != c)
            peer_left(&clients[i], &c->key);
        clients[i].heard[slot] = false;
    }
    memset(c, 0, sizeof(*c));
    c->fd = -1;
}

/* ---- packets ---- */

static struct client *find(const struct zc_key *key)
{
    struct client *best = NULL;
    for (size_t i = 0; i < CLIENTS_MAX; i++) {
        struct client *c = &clients[i];
        if (c->fd >= 0 && c->state == UP && memcmp(c->key.b, key->b, 32) == 0 &&
            (best == NULL || c->active > best->active))
            best = c;
    }
    return best;
}

static void forward(struct client *from, const uint8_t *payload, size_t len)
{
    static const uint8_t magic[] = {'T', 'S', 0xf0, 0x9f, 0x92, 0xac};
    struct zc_key key;
    if (len < 32)
        return;
    memcpy(key.b, payload, 32);
    bool disco = len >= 32 + sizeof(magic) && memcmp(payload + 32, magic, sizeof(magic)) == 0;
    struct client *to = find(&key);
    if (to == NULL) {
        if (disco)
            peer_gone(from, &key, 1);
        return;
    }
    struct frame *f = malloc(sizeof(*f) + 5 + len);
    if (f == NULL)
        die("memory");
    f->len = 5 + len;
    head(f->data, 0x05, len);
    memcpy(f->data + 5, from->key.b, 32);
    memcpy(f->data + 37, payload + 32, len - 32);
    struct frame **queue = to->queues[!disco];
    int *n = &to->queued[!disco];
    if (*n == QUEUE_MAX) {
        free(queue[0]);
        memmove(queue, queue + 1, (QUEUE_MAX - 1) * sizeof(*queue));
        (*n)--;
    }
    queue[(*n)++] = f;
    to->heard[from - clients] = true;
}

static bool take_frame(struct client *c, uint8_t type, const uint8_t *payload, size_t len)
{
    c->active = ++activity;
    switch (type) {
    case 0x04:
        forward(c, payload, len);
        return true;
    case 0x12:
        if (len >= 8 && len <= 1000)
            control(c, 0x13, payload, len);
        return len >= 8;
    case 0x10:
    case 0x11:
        return false;
    default:
        return true;
    }
}

/* ---- login ---- */

static bool log_in(struct client *c, uint8_t type, const uint8_t *payload, size_t len)
{
    static const char info[] = "{\"version\":2}";
    uint8_t text[4096], reply[ZC_BOX_NONCE + ZC_BOX_TAG + sizeof(info) - 1];
    struct zc_secret shared;
    if (type != 0x02 || len < 32 + ZC_BOX_NONCE + ZC_BOX_TAG || len > sizeof(text))
        return false;
    memcpy(c->key.b, payload, 32);
    if (zc_box_shared(&relay_private, &c->key, &shared) != 0 ||
        zc_box_open(&shared, payload + 32, zc_slice(payload + 56, len - 56), text) != 0)
        return false;
    randombytes_buf(reply, ZC_BOX_NONCE);
    zc_box_seal(&shared, reply, zc_slice_str(info), reply + ZC_BOX_NONCE);
    control(c, 0x03, reply, sizeof(reply));
    c->state = UP;
    c->active = ++activity;
    return true;
}

static bool upgrade(struct client *c)
{
    static const char answer[] = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: DERP\r\n"
                                 "Connection: Upgrade\r\nDerp-Version: 2\r\n\r\n";
    uint8_t payload[40] = {'D', 'E', 'R', 'P', 0xf0, 0x9f, 0x94, 0x91};
    const uint8_t *end = memmem(c->in.data, c->in.len, "\r\n\r\n", 4);
    if (end == NULL)
        return c->in.len < 8192;
    if (memcmp(c->in.data, "GET /derp ", 10) != 0)
        return false;
    zc_buf_consume(&c->in, (size_t)(end - c->in.data) + 4);
    append(&c->out, answer, sizeof(answer) - 1);
    memcpy(payload + 8, relay_public.b, 32);
    control(c, 0x01, payload, sizeof(payload));
    c->state = LOGIN;
    return true;
}

/* Works off what was read. False: hang up. */
static bool work(struct client *c)
{
    if (c->state == HTTP && c->in.len > 0 && !upgrade(c))
        return false;
    while (c->state >= LOGIN && c->in.len >= 5) {
        const uint8_t *p = c->in.data;
        size_t len = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
        if (len > FRAME_MAX)
            return false;
        if (c->in.len < 5 + len)
            break;
        bool good =
            c->state == LOGIN ? log_in(c, p[0], p + 5, len) : take_frame(c, p[0], p + 5, len);
        if (!good)
            return false;
        zc_buf_consume(&c->in, 5 + len);
    }
    return true;
}

/* ---- sockets ---- */

static bool waits(SSL *ssl, int result)
{
    int e = SSL_get_error(ssl, result);
    ERR_clear_error();
    return e == SSL_ERROR_WANT_READ || e == SSL_ERROR_WANT_WRITE;
}

static bool receive(struct client *c)
{
    uint8_t buf[16384];
    if (c->state == TLS) {
        int r = SSL_accept(c->ssl);
        if (r != 1)
            return waits(c->ssl, r);
        c->state = HTTP;
    }
    for (int i = 0; i < 4; i++) {
        int n = SSL_read(c->ssl, buf, sizeof(buf));
        if (n <= 0)
            return waits(c->ssl, n);
        append(&c->in, buf, (size_t)n);
        if (!work(c))
            return false;
    }
    return true;
}

static void next_packet(struct client *c)
{
    for (int q = 0; q < 2 && c->out.len == 0; q++) {
        if (c->queued[q] == 0)
            continue;
        struct frame *f = c->queues[q][0];
        append(&c->out, f->data, f->len);
        free(f);
        c->queued[q]--;
        memmove(c->queues[q], c->queues[q] + 1, (size_t)c->queued[q] * sizeof(f));
    }
}

static bool transmit(struct client *c)
{
    for (int i = 0; i < 64 && c->state != TLS; i++) {
        next_packet(c);
        if (c->out.len == 0)
            return true;
        int n = SSL_write(c->ssl, c->out.data, (int)c->out.len);
        if (n <= 0)
            return waits(c->ssl, n);
        zc_buf_consume(&c->out, (size_t)n);
    }
    return true;
}

static void accept_client(int listener, SSL_CTX *ctx)
{
    int one = 1, fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    struct client *c = clients;
    if (fd < 0)
        return;
    while (c < clients + CLIENTS_MAX && c->fd >= 0)
        c++;
    if (c == clients + CLIENTS_MAX) {
        close(fd);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    c->fd = fd;
    c->ssl = SSL_new(ctx);
    if (c->ssl == NULL || SSL_set_fd(c->ssl, fd) != 1)
        die("TLS");
    SSL_set_accept_state(c->ssl);
    SSL_set_mode(c->ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
}

static void keep_alive(int64_t *at)
{
    if (now_ms() < *at)
        return;
    *at = now_ms() + KEEP_ALIVE_MS;
    for (size_t i = 0; i < CLIENTS_MAX; i++)
        if (clients[i].fd >= 0 && clients[i].state == UP)
            control(&clients[i], 0x06, NULL, 0);
}

static void serve(int listener, SSL_CTX *ctx)
{
    static struct pollfd polls[CLIENTS_MAX + 1];
    static struct client *of[CLIENTS_MAX + 1];
    int64_t keep_alive_at = now_ms() + KEEP_ALIVE_MS;
    for (;;) {
        nfds_t n = 1;
        polls[0] = (struct pollfd){.fd = listener, .events = POLLIN};
        for (size_t i = 0; i < CLIENTS_MAX; i++) {
            struct client *c = &clients[i];
            if (c->fd < 0)
                continue;
            if (!transmit(c)) {
                hang_up(c);
                continue;
            }
            bool more =
                c->state != TLS && c->out.len + (size_t)c->queued[0] + (size_t)c->queued[1] > 0;
            of[n] = c;
            polls[n++] =
                (struct pollfd){.fd = c->fd, .events = (short)(POLLIN | (more ? POLLOUT : 0))};
        }
        if (poll(polls, n, 1000) < 0 && errno != EINTR)
            die("poll");
        if (polls[0].revents != 0)
            accept_client(listener, ctx);
        for (nfds_t i = 1; i < n; i++)
            if ((polls[i].revents & (POLLIN | POLLHUP | POLLERR)) && of[i]->fd == polls[i].fd &&
                !receive(of[i]))
                hang_up(of[i]);
        keep_alive(&keep_alive_at);
    }
}

static int listen_on(const char *address, unsigned port, uint16_t *ret_port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    socklen_t len = sizeof(at);
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (inet_pton(AF_INET, address, &at.sin_addr) != 1 || fd < 0 ||
        bind(fd, (struct sockaddr *)&at, len) < 0 || listen(fd, 256) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &len) < 0)
        die("listen");
    *ret_port = ntohs(at.sin_port);
    return fd;
}

int main(int argc, char **argv)
{
    const char *dir = NULL, *address = "127.0.0.1";
    unsigned long port = 0;
    uint16_t bound;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--dir") == 0)
            dir = argv[i + 1];
        else if (strcmp(argv[i], "--address") == 0)
            address = argv[i + 1];
        else if (strcmp(argv[i], "--port") == 0)
            port = strtoul(argv[i + 1], NULL, 10);
    }
    if (dir == NULL || port > 65535) {
        fprintf(stderr, "usage: relay --dir DIR [--address A] [--port N]\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    if (sodium_init() < 0)
        die("libsodium");
    randombytes_buf(relay_private.b, sizeof(relay_private.b));
    zc_x25519_public(&relay_private, &relay_public);
    for (size_t i = 0; i < CLIENTS_MAX; i++)
        clients[i].fd = -1;
    int listener = listen_on(address, (unsigned)port, &bound);
    SSL_CTX *ctx = relay_cert_open(dir, address, bound);
    if (ctx == NULL)
        die("certificate");
    printf("relay at %s:%u\n", address, bound);
    fflush(stdout);
    serve(listener, ctx);
    return 0;
}
