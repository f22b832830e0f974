/*
 * The vectors of tests/vectors/tailcat.json for C tests. The scanner decodes strings where they
 * lie, so each object is opened once; the file is read anew by every vec_section.
 */
#ifndef ZC_TESTS_UNIT_VECTOR_H
#define ZC_TESTS_UNIT_VECTOR_H

#include "base/json.h"
#include "test.h"

#define VEC_MEMBERS_MAX 64

struct vec {
    struct zc_slice names[VEC_MEMBERS_MAX];
    struct zc_json_value values[VEC_MEMBERS_MAX];
    size_t len;
};

/* Without its vectors a test proves nothing. */
static inline void vec_need(bool good, const char *what)
{
    if (good)
        return;
    printf("tests/vectors/tailcat.json: %s; run the test from the project's folder\n", what);
    exit(2);
}

static inline struct vec vec_object(struct zc_json_value value)
{
    struct vec v = {0};
    struct zc_json j;
    bool first = true, bad;
    vec_need(value.type == ZC_JSON_OBJECT, "an object is missing");
    zc_json_init(&j, (uint8_t *)value.text.data, value.text.len);
    vec_need(zc_json_eat(&j, '{'), "no object");
    while (zc_json_member(&j, &first, 1, &v.names[v.len], &bad, &v.values[v.len]))
        vec_need(++v.len < VEC_MEMBERS_MAX, "an object has too many members");
    vec_need(j.error == NULL, "bad syntax");
    return v;
}

static inline struct zc_json_value vec_get(const struct vec *v, const char *name)
{
    for (size_t i = 0; i < v->len; i++) {
        if (zc_slice_is(v->names[i], name))
            return v->values[i];
    }
    vec_need(false, name);
    return (struct zc_json_value){0};
}

static inline struct zc_json_value vec_section(const char *name)
{
    static uint8_t text[1 << 18];
    FILE *f = fopen("tests/vectors/tailcat.json", "r");
    vec_need(f != NULL, "cannot be opened");
    size_t len = fread(text, 1, sizeof(text), f);
    fclose(f);
    vec_need(len > 0 && len < sizeof(text), "empty or too long");
    struct zc_json j;
    zc_json_init(&j, text, len);
    struct vec all = vec_object(zc_json_value(&j, 0));
    return vec_get(&all, name);
}

/* Calls each element of an array: for (size_t i = 0; vec_next(&it, &value);) */
struct vec_each {
    struct zc_json j;
    bool first;
};

static inline struct vec_each vec_each(struct zc_json_value value)
{
    struct vec_each it = {.first = true};
    vec_need(value.type == ZC_JSON_ARRAY, "an array is missing");
    zc_json_init(&it.j, (uint8_t *)value.text.data, value.text.len);
    vec_need(zc_json_eat(&it.j, '['), "no array");
    return it;
}

static inline bool vec_next(struct vec_each *it, struct zc_json_value *ret_value)
{
    return zc_json_element(&it->j, &it->first, 1, ret_value);
}

static inline struct zc_slice vec_text(const struct vec *v, const char *name)
{
    struct zc_json_value value = vec_get(v, name);
    vec_need(value.type == ZC_JSON_STRING, name);
    return value.text;
}

static inline uint64_t vec_int(const struct vec *v, const char *name)
{
    struct zc_json_value value = vec_get(v, name);
    int64_t n = -1;
    vec_need(value.type == ZC_JSON_NUMBER && zc_json_int(value.text, &n) && n >= 0, name);
    return (uint64_t)n;
}

/* Bytes of a hex text; must fit into cap. */
static inline size_t vec_unhex(struct zc_slice text, uint8_t *ret_data, size_t cap)
{
    static const char digits[] = "0123456789abcdef";
    vec_need(text.len % 2 == 0 && text.len / 2 <= cap, "hex does not fit");
    for (size_t i = 0; i < text.len; i++) {
        const char *digit = strchr(digits, text.data[i]);
        vec_need(digit != NULL && text.data[i] != 0, "no hex");
        unsigned value = (unsigned)(digit - digits);
        ret_data[i / 2] = (uint8_t)(i % 2 == 0 ? value << 4 : ret_data[i / 2] | value);
    }
    return text.len / 2;
}

static inline size_t vec_hex(const struct vec *v, const char *name, uint8_t *ret_data, size_t cap)
{
    return vec_unhex(vec_text(v, name), ret_data, cap);
}

/* The bytes of a member are those given. */
static inline bool vec_is(const struct vec *v, const char *name, const void *data, size_t len)
{
    uint8_t want[4096];
    return vec_hex(v, name, want, sizeof(want)) == len && memcmp(want, data, len) == 0;
}

#endif
