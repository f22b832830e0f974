/* Who is at the other end: unix credentials, IPv4, IPv6, IPv4 on a dual-stack listener. */
#include "host/peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "peer_us.h"
#include "test.h"

TEST(unix_peer_is_a_uid)
{
    check_peer_is_us();
}

/* Connects `from` to a listener at `to`, and checks the identity against the client's own port. */
static void check_tcp(const struct sockaddr_in6 *listen_at, int client_family, const char *format)
{
    char name[80], identity[90];
    struct sockaddr_storage self = {0};
    struct sockaddr_in6 at = *listen_at;
    socklen_t len = sizeof(at);
    int zero = 0, l = socket(AF_INET6, SOCK_STREAM, 0), c = socket(client_family, SOCK_STREAM, 0);
    struct zc_peer_text p;
    CHECK_INT(setsockopt(l, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero)), 0);
    CHECK_INT(bind(l, (struct sockaddr *)&at, sizeof(at)), 0);
    CHECK_INT(listen(l, 5), 0);
    CHECK_INT(getsockname(l, (struct sockaddr *)&at, &len), 0);
    if (client_family == AF_INET) {
        struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = at.sin6_port};
        four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        CHECK_INT(connect(c, (struct sockaddr *)&four, sizeof(four)), 0);
    } else {
        at.sin6_addr = in6addr_loopback;
        CHECK_INT(connect(c, (struct sockaddr *)&at, sizeof(at)), 0);
    }
    int a = accept(l, NULL, NULL);
    len = sizeof(self);
    CHECK_INT(getsockname(c, (struct sockaddr *)&self, &len), 0);
    unsigned port = ntohs(client_family == AF_INET ? ((struct sockaddr_in *)&self)->sin_port
                                                   : ((struct sockaddr_in6 *)&self)->sin6_port);
    snprintf(name, sizeof(name), "%s:%u", format, port);
    snprintf(identity, sizeof(identity), "tcp:%s", name);
    CHECK_INT(zc_peer_identify(a, &p), 0);
    CHECK(strcmp(p.name, name) == 0);
    CHECK(strcmp(p.identity, identity) == 0);
    close(a);
    close(c);
    close(l);
}

TEST(tcp_peers)
{
    struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_addr = in6addr_any};
    check_tcp(&any, AF_INET, "127.0.0.1");
    check_tcp(&any, AF_INET6, "[::1]");
}

TEST(no_socket)
{
    struct zc_peer_text p;
    int fds[2];
    CHECK_INT(pipe(fds), 0);
    CHECK_INT(zc_peer_identify(fds[0], &p), ZC_ECLOSED);
    close(fds[0]);
    close(fds[1]);
    CHECK_INT(zc_peer_identify(fds[0], &p), ZC_ECLOSED);
}
