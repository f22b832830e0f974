/* No service manager: started by hand, by cron, by runit. Nothing is handed over or told. */
#include "host/service.h"

int zc_service_sockets(struct zc_service_sockets *ret_sockets, const char **ret_why)
{
    (void)ret_why;
    ret_sockets->count = 0;
    return 0;
}

void zc_service_ready(void)
{
}

void zc_service_status(const char *text)
{
    (void)text;
}

void zc_service_stopping(void)
{
}

int64_t zc_service_watchdog_ms(void)
{
    return 0;
}

void zc_service_watchdog(void)
{
}

bool zc_service_owns_log(void)
{
    return false;
}
