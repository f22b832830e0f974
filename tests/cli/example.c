/* A program as a user of the installed library writes it: put, take, publish, subscribe. */
#include <stdio.h>
#include <string.h>

#include <zmqcat.h>

static struct zmqcat *bus;

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s (%s)\n", what, zmqcat_error_text(bus), zmqcat_error_code(bus));
    zmqcat_free(bus);
    return 1;
}

int main(int argc, char **argv)
{
    struct zmqcat_msg m;
    int64_t subs = 0;
    const char *json;
    size_t len;
    if (zmqcat_open(argc > 1 ? argv[1] : NULL, "example", &bus) != ZMQCAT_OK)
        return fail("open");
    if (zmqcat_put(bus, "jobs", 4, "job\0!", 5, NULL) != ZMQCAT_OK)
        return fail("put");
    if (zmqcat_reserve(bus, "jobs", 4, 30, 5000, &m) != ZMQCAT_OK)
        return fail("reserve");
    if (m.payload_len != 5 || memcmp(m.payload, "job\0!", 5) != 0)
        return fail("payload");
    if (zmqcat_ack(bus, m.delivery, m.delivery_len) != ZMQCAT_OK)
        return fail("ack");
    if (zmqcat_take(bus, "jobs", 4, 0, &m) != ZMQCAT_TIMEOUT)
        return fail("take");
    if (zmqcat_sub(bus, "ev.", 3) != ZMQCAT_OK)
        return fail("sub");
    if (zmqcat_pub(bus, "ev.a", 4, "hello", 5, NULL, &subs) != ZMQCAT_OK || subs != 1)
        return fail("pub");
    if (zmqcat_next(bus, 5000, &m) != ZMQCAT_OK || m.payload_len != 5)
        return fail("next");
    printf("%.*s from %.*s: %.*s\n", (int)m.name_len, m.name, (int)m.from_len, m.from,
           (int)m.payload_len, (const char *)m.payload);
    if (zmqcat_query(bus, "stat", "jobs", 4, NULL, &json, &len) != ZMQCAT_OK)
        return fail("stat");
    printf("%.*s\n", (int)len, json);
    zmqcat_free(bus);
    return 0;
}
