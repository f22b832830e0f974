/* What kind of world a seed gives. */
#ifndef ZC_TESTS_SIM_PROFILE_H
#define ZC_TESTS_SIM_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "disk.h"
#include "node/hub.h"
#include "rnd.h"

enum profile_kind {
    PROFILE_MEMORY,
    PROFILE_DURABLE,
    PROFILE_FAULTS,
    PROFILE_TINY,  /* tiny caps */
    PROFILE_COLD,  /* tiny hot window */
    PROFILE_STORM, /* crash after crash */
    PROFILE_ROT,   /* bits turn over between crash and start */
    PROFILE_COUNT,
    PROFILE_OPERATE = PROFILE_COUNT, /* what operate.c does, and nothing else */
};

#define PROFILE_OPS 18

struct profile {
    enum profile_kind kind;
    const char *name;
    int clients, boxes;
    uint32_t steps;
    struct zc_hub_config hub;
    struct disk_faults faults;
    int64_t latency_ns[2];
    uint64_t capacity; /* 0: no limit */
    int64_t pace_ns;   /* mean time between a client's requests */
    int64_t crash_every_ns, stop_every_ns, settle_every_ns; /* 0: never */
    bool wall_steps;
    bool rare_purges; /* so that more is surely there, and missed when it is lost */
    bool leases;      /* operators reserve as well, and delay what they put */
    bool rare_moves;  /* so that most lies surely in one mailbox, and a purge must spare it */
    bool power_loss;  /* crashes are power losses at times */
    uint32_t payload_max;
    uint32_t weights[PROFILE_OPS]; /* of enum op, then reset and half-close */
    uint32_t never_reads_ppm, deaf_ppm;
};

void profile_choose(struct profile *p, uint64_t seed, struct rnd *r);

#endif
