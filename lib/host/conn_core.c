/* A connection's session or splice; see conn_core.h. */
#include "host/conn_core.h"

#include "host/host.h"
#include "node/splice.h"

bool zc_conn_core_attached(const struct zc_conn *c)
{
    return c->session != NULL || c->splice != NULL;
}

void zc_conn_core_detach(struct zc_conn *c, bool reset)
{
    struct zc_host *h = c->host;
    struct zc_session *s = c->session;
    struct zc_splice *splice = c->splice;
    c->session = NULL;
    c->splice = NULL;
    if (s != NULL)
        zc_hub_detach(h->config.hub, s, zc_host_now(h));
    if (splice != NULL)
        zc_splice_detach(splice, zc_host_now(h), reset);
}

bool zc_conn_core_wants_input(const struct zc_conn *c)
{
    if (c->splice != NULL)
        return zc_splice_wants_input(c->splice);
    return zc_hub_wants_input(c->host->config.hub, c->session);
}

void zc_conn_core_input(struct zc_conn *c, uint8_t *data, size_t len)
{
    struct zc_host *h = c->host;
    if (c->splice != NULL)
        zc_splice_input(c->splice, zc_host_now(h), data, len);
    else
        zc_hub_input(h->config.hub, c->session, zc_host_now(h), data, len);
}

void zc_conn_core_input_eof(struct zc_conn *c)
{
    struct zc_host *h = c->host;
    if (c->splice != NULL)
        zc_splice_eof(c->splice, zc_host_now(h));
    else
        zc_hub_eof(h->config.hub, c->session, zc_host_now(h));
}

size_t zc_conn_core_output(struct zc_conn *c, struct zc_slice *ret_slices)
{
    size_t n = 0;
    if (c->splice != NULL)
        return zc_splice_output(c->splice, ret_slices);
    zc_hub_output(c->host->config.hub, c->session, ret_slices, ZC_CONN_CORE_SLICES, &n);
    return n;
}

void zc_conn_core_sent(struct zc_conn *c, size_t n)
{
    struct zc_host *h = c->host;
    if (c->splice != NULL)
        zc_splice_sent(c->splice, zc_host_now(h), n);
    else
        zc_hub_sent(h->config.hub, c->session, zc_host_now(h), n);
}
