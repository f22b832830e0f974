/* Messages on standard error. */
#include "say.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"

void zc_say_escape(char *ret_out, size_t cap, const char *text, size_t len)
{
    zc_text_escape(ret_out, cap, zc_slice(text, len));
}

int zc_say_fail(int status, const char *verb, const char *name, const char *why)
{
    char shown[256] = "";
    if (name != NULL)
        zc_say_escape(shown, sizeof shown, name, strlen(name));
    fprintf(stderr, "zmqcat: %s%s%s: %s\n", verb, name != NULL ? " " : "", shown, why);
    return status;
}

int zc_say_usage(const char *verb, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fprintf(stderr, "zmqcat: %s: ", verb);
    vfprintf(stderr, format, list);
    fprintf(stderr, "\nhint: see `zmqcat %s --help`\n", verb);
    va_end(list);
    return 2;
}

void zc_say_hint(const char *text)
{
    fprintf(stderr, "hint: %s\n", text);
}

int zc_say_bus(const struct zc_args *args, const struct zmqcat *bus, int rc)
{
    static const struct {
        const char *code, *hint;
    } hints[] = {
        {"full", "the hub's limit is reached (zmqcat-hub --mailbox-cap, --mailboxes-max): take "
                 "messages first, or raise it"},
        {"too_large", "a payload may have 1 MiB unless the hub was started with another "
                      "--max-payload"},
        {"denied", "names that begin with $ are the hub's own"},
        {"unknown_op",
         "an older hub, or the wrong socket: the bus serves messages, the control socket "
         "(.ctl) status and trace"},
        {"unroutable", "without --if-consumer it would wait there for somebody"},
        {"storage", "see the hub's log and `zmqcat status`: its disk may be full"},
    };
    static const int statuses[] = {
        [0] = 0,
        [-ZMQCAT_FAILED] = 1,
        [-ZMQCAT_USAGE] = 2,
        [-ZMQCAT_TIMEOUT] = 3,
        [-ZMQCAT_REFUSED] = 4,
        [-ZMQCAT_CLOSED] = 1,
        [-ZMQCAT_PROTOCOL] = 1,
        [-ZMQCAT_ERR] = 1,
        [-ZMQCAT_FULL] = 1,
        [-ZMQCAT_STOPPED] = 1,
    };
    ZC_ASSERT(rc <= 0 && -rc < (int)ZC_ARRAY_LEN(statuses));
    zc_say_fail(0, args->verb, args->rest_count > 0 ? args->rest[0] : NULL, zmqcat_error_text(bus));
    for (size_t i = 0; i < ZC_ARRAY_LEN(hints); i++)
        if (strcmp(zmqcat_error_code(bus), hints[i].code) == 0)
            zc_say_hint(hints[i].hint);
    return statuses[-rc];
}
