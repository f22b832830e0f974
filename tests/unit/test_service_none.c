/* No service manager: service_none.c is compiled into this program, in place of the one that the
 * host library has on this system. A hub behind it makes its own sockets, feeds no watchdog and
 * writes plain lines. */
#include "../../lib/host/service_none.c"

#include <stdlib.h>
#include <string.h>

#include "test.h"

TEST(nothing_is_handed_over_or_wanted)
{
    struct zc_service_sockets got;
    const char *why = NULL;
    memset(&got, 0xff, sizeof(got));
    setenv("LISTEN_FDS", "1", 1);
    setenv("WATCHDOG_USEC", "1000000", 1);
    CHECK_INT(zc_service_sockets(&got, &why), 0);
    CHECK_INT(got.count, 0);
    CHECK(why == NULL);
    CHECK_INT(zc_service_watchdog_ms(), 0);
    CHECK(!zc_service_owns_log());
    zc_service_ready();
    zc_service_status("x");
    zc_service_watchdog();
    zc_service_stopping();
}
