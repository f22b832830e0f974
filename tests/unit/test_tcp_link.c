/* Two stacks over a bad link: whole streams, whatever the link and the users do. */
#include "tcp_flow.h"

static void listen_at_7(struct link *l)
{
    if (zc_tcpmux_listen(l->mux[1], 7, 7) != 0)
        abort();
}

TEST(clean_link)
{
    struct link l;
    struct user users[2] = {{.to_write = 300000}, {.to_write = 200000}};
    link_init(&l, 1, NULL);
    listen_at_7(&l);
    users_start(&l, users);
    users_run(&l, users, 60000);
    users_check_done(users);
    CHECK_INT(zc_tcpmux_stats(l.mux[0]).retransmitted, 0);
    CHECK_INT(zc_tcpmux_stats(l.mux[1]).retransmitted, 0);
    CHECK(users[0].closed_ms < 2000);
    link_run(&l, 60000);
    link_check_empty(&l);
    link_done(&l);
}
