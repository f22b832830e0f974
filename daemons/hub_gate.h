/* The allow list at work: read at the start, read again, a key shut out, and what is said of it. */
#ifndef ZC_DAEMONS_HUB_GATE_H
#define ZC_DAEMONS_HUB_GATE_H

#include "hub_allow.h"

struct zc_host;

struct zc_hub_gate {
    struct zc_hub_allow allow;
    struct zc_logsink *log;
};

/* The first look at the lists; key_path: beside it revoked keys are kept without a state directory,
 * "": none. 0 or the exit code after it said why. */
int zc_hub_gate_open(struct zc_hub_gate *g, const struct zc_hub_options *o, struct zc_logsink *log,
                     const char *key_path);
/* ZC_HUB_RELOAD, ZC_HUB_REVOKE and ZC_HUB_REFUSED of the host's hub: done, said and answered. */
void zc_hub_gate_reload(struct zc_hub_gate *g, struct zc_host *h);
void zc_hub_gate_revoke(struct zc_hub_gate *g, struct zc_host *h, const struct zc_key *key);
void zc_hub_gate_refused(struct zc_hub_gate *g, const struct zc_key *key);
void zc_hub_gate_done(struct zc_hub_gate *g);

#endif
