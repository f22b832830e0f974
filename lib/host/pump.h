/* Moves what there is to move between the core, the sockets and the disk. */
#ifndef ZC_HOST_PUMP_H
#define ZC_HOST_PUMP_H

struct zc_host;

/* To be called after input, time or completions went into the core. */
void zc_pump_run(struct zc_host *h);

#endif
