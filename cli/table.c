/* JSON objects for people. */
#include "table.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"

#define KEY_WIDTH 32
#define KEY_MAX 200
#define DEPTH_MAX 8

static bool walk(struct zc_out *out, struct zc_json *j, bool object, const char *path,
                 unsigned depth);

static void row(struct zc_out *out, const char *key, struct zc_json_value v)
{
    char left[KEY_MAX + KEY_WIDTH];
    snprintf(left, sizeof left, "%-*s ", KEY_WIDTH, key);
    zc_out_name(out, left, strlen(left));
    if (v.type == ZC_JSON_NULL)
        zc_out_str(out, "-");
    else if (v.type == ZC_JSON_BOOL)
        zc_out_str(out, v.boolean ? "yes" : "no");
    else
        zc_out_name(out, (const char *)v.text.data, v.text.len);
    zc_out_str(out, "\n");
}

static bool value(struct zc_out *out, const char *key, struct zc_json_value v, unsigned depth)
{
    if (v.type != ZC_JSON_OBJECT && v.type != ZC_JSON_ARRAY) {
        row(out, key, v);
        return true;
    }
    if (depth >= DEPTH_MAX)
        return false;
    struct zc_json inner;
    /* The text lies in the caller's buffer, which is ours to overwrite. */
    zc_json_init(&inner, (uint8_t *)(uintptr_t)v.text.data, v.text.len);
    return walk(out, &inner, v.type == ZC_JSON_OBJECT, key, depth + 1);
}

static bool walk(struct zc_out *out, struct zc_json *j, bool object, const char *path,
                 unsigned depth)
{
    struct zc_slice key = {0};
    struct zc_json_value v;
    bool first = true, bad = false;
    unsigned index = 0;
    if (!zc_json_eat(j, object ? '{' : '['))
        return false;
    while (object ? zc_json_member(j, &first, depth, &key, &bad, &v)
                  : zc_json_element(j, &first, depth, &v)) {
        char text[KEY_MAX];
        const char *dot = path[0] != '\0' ? "." : "";
        if (object)
            snprintf(text, sizeof text, "%s%s%.*s", path, dot, (int)key.len,
                     (const char *)key.data);
        else
            snprintf(text, sizeof text, "%s%s%u", path, dot, index++);
        if (!value(out, text, v, depth))
            return false;
    }
    return j->error == NULL;
}

bool zc_table_print(struct zc_out *out, uint8_t *json, size_t len)
{
    struct zc_json j;
    zc_json_init(&j, json, len);
    return walk(out, &j, true, "", 1);
}
