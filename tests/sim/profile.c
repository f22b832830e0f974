/* What kind of world a seed gives: the limits of the hub, the faults of the disk, who comes and how
 * rude they are. */
#include "profile.h"

#include <string.h>

#include "world.h"

static const char *const names[] = {"memory",     "durable",     "disk faults", "tiny caps",
                                    "cold reads", "crash storm", "bit rot",     "operators"};

/* enum op in its order, then reset and half-close. */
static const uint32_t weights[PROFILE_OPS] = {
    [OP_PUT] = 300,  [OP_TAKE] = 130,  [OP_RESERVE] = 60, [OP_READY] = 60, [OP_ACK] = 110,
    [OP_NACK] = 25,  [OP_TOUCH] = 15,  [OP_REQ] = 40,     [OP_REP] = 40,   [OP_PUB] = 80,
    [OP_SUB] = 10,   [OP_UNSUB] = 2,   [OP_PING] = 10,    [OP_HELLO] = 6,  [OP_INFO] = 8,
    [OP_WRONG] = 10, [OP_GARBAGE] = 2,
};

static void common(struct profile *p, struct rnd *r)
{
    p->name = names[p->kind];
    p->clients = (int)rnd_range(r, 2, CLIENTS_MAX);
    p->boxes = (int)rnd_range(r, 1, BOXES_MAX);
    p->steps = 20000;
    p->latency_ns[0] = 50000;
    p->latency_ns[1] = rnd_one_in(r, 3) ? 20 * MS : MS;
    p->pace_ns = rnd_range(r, 1, 40) * MS;
    p->settle_every_ns = rnd_range(r, 2, 12) * SECOND;
    p->payload_max = 2000;
    p->wall_steps = rnd_one_in(r, 4);
    p->never_reads_ppm = 60000;
    p->deaf_ppm = 100000;
    memcpy(p->weights, weights, sizeof weights);
    for (int i = 0; i < PROFILE_OPS; i++) /* every seed has other preferences */
        p->weights[i] = p->weights[i] * (uint32_t)rnd_range(r, 2, 20) / 10;
}

static void hub_limits(struct profile *p, struct rnd *r)
{
    zc_hub_config_default(&p->hub);
    p->hub.version = "sim";
    p->hub.payload_max = 4096;
    p->hub.heartbeat_ms = rnd_one_in(r, 3) ? 0 : rnd_range(r, 1, 5) * 1000;
    p->hub.durable = p->kind != PROFILE_MEMORY;
    p->hub.storage_path = p->hub.durable ? "/sim" : NULL;
    p->hub.log.sync = ZC_LOG_SYNC_ALWAYS;
    p->hub.log.segment_bytes = (uint64_t)rnd_range(r, 1, 4) * 65536;
}

static void tiny(struct profile *p, struct rnd *r)
{
    p->hub.durable = rnd_one_in(r, 2);
    p->hub.mailbox_cap = (uint64_t)rnd_range(r, 1, 8);
    p->hub.sub_buffer = (uint64_t)rnd_range(r, 1, 4);
    p->hub.topics_max = (uint64_t)rnd_range(r, 1, 3);
    p->hub.mailboxes_max = (uint64_t)rnd_range(r, 1, BOXES_MAX);
    p->hub.sessions_max = (uint64_t)rnd_range(r, 2, CLIENTS_MAX);
    p->hub.session_bytes = (uint64_t)rnd_range(r, 4096, 65536);
    p->hub.output_bytes = 1; /* four sessions */
}

static void faults(struct profile *p, struct rnd *r)
{
    struct disk_faults *f = &p->faults;
    uint32_t hard = rnd_one_in(r, 3) ? 60000 : 8000;
    f->write_eio_ppm = rnd_one_in(r, 2) ? hard : 0;
    f->write_short_ppm = rnd_one_in(r, 2) ? hard : 0;
    f->write_full_ppm = rnd_one_in(r, 4) ? hard : 0;
    f->sync_fail_ppm = rnd_one_in(r, 2) ? hard : 0;
    f->sync_slow_ppm = rnd_one_in(r, 3) ? 20000 : 0;
    f->create_eio_ppm = rnd_one_in(r, 3) ? 200000 : 0;
    if (rnd_one_in(r, 2))
        p->capacity = (uint64_t)rnd_range(r, 3, 12) * p->hub.log.segment_bytes;
    p->crash_every_ns = rnd_range(r, 3, 15) * SECOND;
    p->power_loss = true;
}

void profile_choose(struct profile *p, uint64_t seed, struct rnd *r)
{
    memset(p, 0, sizeof *p);
    p->kind = (enum profile_kind)(seed % PROFILE_COUNT);
    if (seed % 11 == 10)
        p->kind = PROFILE_OPERATE;
    common(p, r);
    hub_limits(p, r);
    if (rnd_one_in(r, 2))
        p->stop_every_ns = rnd_range(r, 3, 20) * SECOND;
    switch (p->kind) {
    case PROFILE_ROT:
        p->crash_every_ns = rnd_range(r, 2, 20) * SECOND;
        break;
    case PROFILE_DURABLE:
        if (rnd_one_in(r, 3))
            p->hub.log.sync = rnd_one_in(r, 2) ? ZC_LOG_SYNC_BATCH : ZC_LOG_SYNC_NEVER;
        p->crash_every_ns = rnd_range(r, 2, 20) * SECOND;
        p->power_loss = rnd_one_in(r, 2);
        p->faults.sync_slow_ppm = rnd_one_in(r, 3) ? 20000 : 0;
        break;
    case PROFILE_FAULTS:
        faults(p, r);
        break;
    case PROFILE_TINY:
        tiny(p, r);
        break;
    case PROFILE_COLD:
        p->hub.hot_bytes = (uint64_t)rnd_below(r, 20000);
        p->payload_max = 4000;
        p->weights[OP_PUT] *= 2;
        p->crash_every_ns = rnd_range(r, 5, 20) * SECOND;
        p->power_loss = rnd_one_in(r, 2);
        break;
    case PROFILE_OPERATE:
        p->crash_every_ns = rnd_range(r, 50, 5000) * MS;
        p->power_loss = rnd_one_in(r, 2);
        p->hub.hot_bytes = rnd_one_in(r, 2) ? (uint64_t)rnd_below(r, 4000) : p->hub.hot_bytes;
        p->steps /= 2;
        p->rare_purges = rnd_one_in(r, 2);
        p->rare_moves = rnd_one_in(r, 2);
        if (rnd_one_in(r, 2))
            faults(p, r);
        p->leases = rnd_one_in(r, 2);
        break;
    case PROFILE_STORM:
        p->crash_every_ns = rnd_range(r, 20, 500) * MS;
        p->power_loss = true;
        p->pace_ns /= 4;
        break;
    default:
        break;
    }
    /* Most messages are at rest as soon as nobody waits for them. */
    p->hub.hot_messages = rnd_one_in(r, 4) ? 1000 : (uint64_t)rnd_below(r, 6);
}
