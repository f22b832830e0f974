/*
 * What the log keeps beside messages: bindings and remembered ids. Each begins with this, so that
 * what is told of its place, and what comes of its record, finds its owner.
 */
#ifndef ZC_ZMQC_SETTING_H
#define ZC_ZMQC_SETTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The byte behind each place that the log knows. */
enum zc_owner { ZC_OWNER_MESSAGE, ZC_OWNER_BINDING, ZC_OWNER_SEEN, ZC_OWNER_ROW };

struct zc_setting {
    uint64_t place; /* 0: not in the log */
    uint8_t owner;  /* enum zc_owner */
    bool unsettled; /* its record, or the removal of it, is on its way to the disk */
    bool gone;      /* only that record still knows it, or its removal is journaled */
    uint64_t seq;
};

static inline enum zc_owner zc_setting_owner(const uint64_t *place)
{
    return (enum zc_owner) * (const uint8_t *)(place + 1);
}

#endif
