/* A durable hub over the disk of store_disk.h, which the test turns and breaks. */
#ifndef ZC_TESTS_UNIT_BUS_DISK_H
#define ZC_TESTS_UNIT_BUS_DISK_H

#include "bus.h"
#include "store_disk.h"

/* The segments that the disk has are valid until the next call. */
static inline struct zc_hub_config bus_disk_config(struct fd *disk)
{
    static uint32_t numbers[FD_FILES];
    struct zc_hub_config c;
    zc_hub_config_default(&c);
    c.durable = true;
    c.hot_messages = bus_hot_messages();
    c.heartbeat_ms = 0;
    c.storage_path = "/";
    c.log.segment_bytes = 65536;
    c.log.segments = numbers;
    c.log.segments_count = fd_list(disk, numbers);
    return c;
}

/* bus_hub, which begins to open its log; NULL: no memory. */
static inline void bus_disk_hub(const struct zc_hub_config *c)
{
    static const uint8_t seed[32] = {7};
    bus_hub = zc_hub_new(c, seed, bus_now);
}

#endif
