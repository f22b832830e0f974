/* The end of a lease; see settle.h. */
#include "settle.h"

#include "say.h"

int zc_settle(const struct zc_args *args, struct zmqcat *bus, const char *delivery, size_t len,
              bool ack)
{
    int rc = ack ? zmqcat_ack(bus, delivery, len) : zmqcat_nack(bus, delivery, len, 0);
    return rc != ZMQCAT_OK ? zc_say_bus(args, bus, rc) : 0;
}
