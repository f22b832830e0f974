/* The hub's side of its tunnel that needs files: keys, allow list, relays, and the token's way out.
 */
#ifndef ZC_DAEMONS_HUB_TUNNEL_H
#define ZC_DAEMONS_HUB_TUNNEL_H

#include "host/host.h"
#include "hub_options.h"
#include "node/hub.h"

struct zc_daemon_tunnel;

/* Reads all files. options and log outlive it. 0 or the exit code after it said why. */
int zc_daemon_tunnel_new(const struct zc_hub_options *options, struct zc_logsink *log,
                         struct zc_daemon_tunnel **ret_tunnel);
/* What the hub is to be made with, right now; points into it. */
void zc_daemon_tunnel_config(struct zc_daemon_tunnel *t, struct zc_hub_tunnel_config *ret_config);
/* An event of the host (host.h). */
void zc_daemon_tunnel_event(struct zc_daemon_tunnel *t, struct zc_host *h,
                            const struct zc_hub_event *e);
/* NULL is fine. */
/* After the loop: what is kept for the next start. */
void zc_daemon_tunnel_end(struct zc_daemon_tunnel *t, struct zc_hub *hub);
void zc_daemon_tunnel_free(struct zc_daemon_tunnel *t);

#endif
