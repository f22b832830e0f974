/* stat, ls, status and trace: questions to the hub. */
#include "open.h"
#include "out.h"
#include "print.h"
#include "say.h"
#include "table.h"
#include "verbs.h"

#include <string.h>

#include "base/json.h"

#define LIST_MAX "\"max\":1000"

/* A result as the user wants to see it. */
static int show(const struct zc_args *args, struct zc_out *out, const char *json, size_t len)
{
    struct zc_buf copy = {0};
    if (args->json) {
        zc_print_json_text(out, json, len);
        zc_out_str(out, "\n");
    } else if (zc_buf_append(&copy, json, len) != 0) {
        out->short_of_memory = true;
    } else if (!zc_table_print(out, copy.data, copy.len)) {
        zc_buf_done(&copy);
        return zc_say_fail(1, args->verb, NULL, "the hub's answer is not readable; try --json");
    }
    zc_buf_done(&copy);
    return zc_out_flush(out);
}

/* One question, its answer shown. */
static int ask(const struct zc_args *args, struct zmqcat *bus, const char *op, const char *name)
{
    const char *json;
    size_t len;
    int rc = zmqcat_query(bus, op, name, name != NULL ? strlen(name) : 0, NULL, &json, &len);
    if (rc != ZMQCAT_OK)
        return zc_say_bus(args, bus, rc);
    struct zc_out out;
    zc_out_init(&out, bus);
    int status = show(args, &out, json, len);
    zc_out_done(&out);
    return status;
}

int zc_inspect_stat(const struct zc_args *args)
{
    struct zmqcat *bus = NULL;
    int status = zc_open_bus(args, &bus);
    if (status == 0)
        status = ask(args, bus, "stat", args->rest_count > 0 ? args->rest[0] : NULL);
    zmqcat_free(bus);
    return status;
}

int zc_inspect_status(const struct zc_args *args)
{
    struct zmqcat *bus = NULL;
    int status = zc_open_control(args, &bus);
    if (status == 0)
        status = ask(args, bus, "status", NULL);
    zmqcat_free(bus);
    return status;
}

int zc_inspect_trace(const struct zc_args *args)
{
    bool on = strcmp(args->rest[0], "on") == 0;
    if (!on && strcmp(args->rest[0], "off") != 0)
        return zc_say_usage(args->verb, "say `on` or `off`");
    struct zmqcat *bus = NULL;
    int status = zc_open_control(args, &bus);
    if (status == 0) {
        const char *json;
        size_t len;
        int rc =
            zmqcat_query(bus, "trace", NULL, 0, on ? "\"on\":true" : "\"on\":false", &json, &len);
        status = rc != ZMQCAT_OK ? zc_say_bus(args, bus, rc) : 0;
    }
    zmqcat_free(bus);
    return status;
}

/* What ls has seen so far. */
struct listing {
    struct zc_buf copy;  /* the page: scanning overwrites it */
    struct zc_buf extra; /* members of the next question */
    uint64_t names;      /* printed */
    bool more;
};

static bool add_name(const struct zc_args *args, struct listing *l, struct zc_out *out,
                     struct zc_slice name)
{
    struct zc_buf b = {0};
    bool ok = true;
    if (args->json) {
        ok = zc_json_put_string(&b, name) == 0;
        zc_out_str(out, l->names > 0 ? "," : "");
        zc_print_json_text(out, (const char *)b.data, b.len);
    } else {
        zc_out_name(out, (const char *)name.data, name.len);
        zc_out_str(out, "\n");
    }
    l->names++;
    zc_buf_done(&b);
    return ok;
}

/* The names of a page; the question for the next one is made from the last. */
static bool add_names(const struct zc_args *args, struct listing *l, struct zc_out *out,
                      struct zc_slice array)
{
    struct zc_json j;
    zc_json_init(&j, (uint8_t *)(uintptr_t)array.data, array.len);
    struct zc_json_value v;
    struct zc_slice last = {0};
    bool first = true;
    if (!zc_json_eat(&j, '['))
        return false;
    while (zc_json_element(&j, &first, 2, &v)) {
        if (v.type != ZC_JSON_STRING || !add_name(args, l, out, v.text))
            return false;
        last = v.text;
    }
    l->extra.len = 0;
    return j.error == NULL && zc_json_put_raw(&l->extra, LIST_MAX ",\"after\":") == 0 &&
           zc_json_put_string(&l->extra, last) == 0 && zc_buf_append(&l->extra, "", 1) == 0;
}

static bool add_page(const struct zc_args *args, struct listing *l, struct zc_out *out,
                     const char *json, size_t len)
{
    l->copy.len = 0;
    if (zc_buf_append(&l->copy, json, len) != 0)
        return false;
    struct zc_json j;
    zc_json_init(&j, l->copy.data, l->copy.len);
    struct zc_slice key;
    struct zc_json_value v;
    bool first = true, bad;
    l->more = false;
    if (!zc_json_eat(&j, '{'))
        return false;
    while (zc_json_member(&j, &first, 1, &key, &bad, &v)) {
        if (zc_slice_is(key, "names") &&
            (v.type != ZC_JSON_ARRAY || !add_names(args, l, out, v.text)))
            return false;
        if (zc_slice_is(key, "more"))
            l->more = v.type == ZC_JSON_BOOL && v.boolean;
    }
    return j.error == NULL;
}

static int list(const struct zc_args *args, struct zmqcat *bus, struct listing *l,
                struct zc_out *out)
{
    const char *prefix = args->rest_count > 0 ? args->rest[0] : "";
    const char *extra = LIST_MAX;
    zc_out_str(out, args->json ? "{\"names\":[" : "");
    do {
        const char *json;
        size_t len;
        int rc = zmqcat_query(bus, "list", prefix, strlen(prefix), extra, &json, &len);
        if (rc != ZMQCAT_OK)
            return zc_say_bus(args, bus, rc);
        uint64_t before = l->names;
        if (!add_page(args, l, out, json, len))
            return zc_say_fail(1, args->verb, NULL, "the hub's answer is not readable");
        if (l->more && l->names == before)
            return zc_say_fail(1, args->verb, NULL,
                               "the hub says that there is more, but not what");
        int status = zc_out_flush(out);
        if (status != 0)
            return status;
        extra = (const char *)l->extra.data;
    } while (l->more);
    zc_out_str(out, args->json ? "],\"more\":false}\n" : "");
    return zc_out_flush(out);
}

int zc_inspect_ls(const struct zc_args *args)
{
    struct zmqcat *bus = NULL;
    int status = zc_open_bus(args, &bus);
    if (status != 0)
        return status;
    struct listing l = {0};
    struct zc_out out;
    zc_out_init(&out, bus);
    status = list(args, bus, &l, &out);
    zc_out_done(&out);
    zc_buf_done(&l.copy);
    zc_buf_done(&l.extra);
    zmqcat_free(bus);
    return status;
}
