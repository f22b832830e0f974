/* The queue of kept deliveries. */
#include "client/kept.h"

#include <stdlib.h>
#include <string.h>

struct zc_bus_kept *zc_kept_copy(const uint8_t *json, size_t len)
{
    struct zc_bus_kept *k = malloc(sizeof *k + len);
    if (k == NULL)
        return NULL;
    memset(&k->link, 0, sizeof k->link);
    k->len = len;
    memcpy(k->data, json, len);
    return k;
}

bool zc_kept_full(const struct zmqcat *bus)
{
    if (bus->asked > 0) /* bounded by what was asked for; each is held for us by the hub */
        return false;
    return bus->kept_count >= ZC_BUS_KEPT_MAX || bus->kept_bytes >= ZC_BUS_KEPT_BYTES_MAX;
}

void zc_kept_push(struct zmqcat *bus, struct zc_bus_kept *k)
{
    if (zc_kept_full(bus)) {
        bus->dropped++;
        free(k);
        return;
    }
    zc_list_push(&bus->kept, &k->link);
    bus->kept_count++;
    bus->kept_bytes += k->len;
}

struct zc_bus_kept *zc_kept_pop(struct zmqcat *bus)
{
    struct zc_list *first = zc_list_first(&bus->kept);
    ZC_ASSERT(first != NULL);
    free(bus->current);
    bus->current = ZC_CONTAINER(first, struct zc_bus_kept, link);
    zc_list_remove(first);
    bus->kept_count--;
    bus->kept_bytes -= bus->current->len;
    return bus->current;
}

void zc_kept_clear(struct zmqcat *bus)
{
    while (!zc_list_empty(&bus->kept))
        zc_kept_pop(bus);
    free(bus->current);
    bus->current = NULL;
}
