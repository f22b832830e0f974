/*
 * A strict layer around cJSON; see jtree.h. The scanner of base/json.h judges the syntax and the
 * depth first, so cJSON only ever sees sound documents.
 */
#include "tunnel/jtree.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "crypto/secret.h"

static int jtree_refuse(int err, const char *text, const char **ret_why)
{
    *ret_why = text;
    return err;
}

static char jtree_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static bool jtree_same(const char *a, const char *b)
{
    while (*a != '\0' && jtree_lower(*a) == jtree_lower(*b)) {
        a++;
        b++;
    }
    return jtree_lower(*a) == jtree_lower(*b);
}

/* Upper bound of the values in the document: what separates them. */
static uint32_t jtree_count(struct zc_slice json)
{
    uint32_t n = 1;
    for (size_t i = 0; i < json.len; i++) {
        uint8_t c = json.data[i];
        n += c == ',' || c == '[' || c == '{';
    }
    return n;
}

static bool jtree_has_zero(struct zc_slice json)
{
    for (size_t i = 0; i + 5 < json.len; i++) {
        if (json.data[i] == '\\' && memcmp(&json.data[i + 1], "u0000", 5) == 0)
            return true;
    }
    return false;
}

/* What cJSON made of the strings: a lone surrogate is not UTF-8, and it must not have lost one. */
static int jtree_check(const cJSON *value, const char **ret_why)
{
    for (const cJSON *v = value; v != NULL; v = v->next) {
        if (v->string != NULL && !zc_text_utf8_valid(zc_slice_str(v->string)))
            return jtree_refuse(ZC_EBADMSG, "a name in it is not Unicode text", ret_why);
        if (cJSON_IsString(v) && !zc_text_utf8_valid(zc_slice_str(v->valuestring)))
            return jtree_refuse(ZC_EBADMSG, "a string in it is not Unicode text", ret_why);
        int err = jtree_check(v->child, ret_why);
        if (err != 0)
            return err;
    }
    return 0;
}

int zc_jtree_parse(struct zc_slice json, uint32_t values_max, struct cJSON **ret_object,
                   const char **ret_why)
{
    struct zc_json scan;
    size_t start = 0;
    while (start < json.len && memchr(" \t\r\n", json.data[start], 4) != NULL)
        start++;
    if (start == json.len)
        return jtree_refuse(ZC_EBADMSG, "it is empty", ret_why);
    if (json.data[start] != '{')
        return jtree_refuse(ZC_EBADMSG, "it is not a JSON object", ret_why);
    if (jtree_count(json) > values_max)
        return jtree_refuse(ZC_ELIMIT, "it holds too many values", ret_why);
    /* Only strings that stand alone are decoded in place, so an object leaves the bytes alone. */
    zc_json_init(&scan, (uint8_t *)json.data, json.len);
    struct zc_json_value v = zc_json_value(&scan, 0);
    if (v.type == ZC_JSON_BAD)
        return jtree_refuse(ZC_EBADMSG, scan.error, ret_why);
    if (!zc_json_at_end(&scan))
        return jtree_refuse(ZC_EBADMSG, "something follows its end", ret_why);
    if (v.utf8_bad || jtree_has_zero(json))
        return jtree_refuse(ZC_EBADMSG, "it has text that is not UTF-8, or a zero character",
                            ret_why);
    cJSON *tree = cJSON_ParseWithLength((const char *)json.data, json.len);
    if (tree == NULL)
        return jtree_refuse(ZC_ENOMEM, "it does not fit into memory, or cannot be read", ret_why);
    int err = jtree_check(tree, ret_why);
    if (err != 0) {
        zc_jtree_free(tree, false);
        return err;
    }
    *ret_object = tree;
    return 0;
}

static void jtree_wipe(cJSON *value)
{
    for (cJSON *v = value; v != NULL; v = v->next) {
        if (v->valuestring != NULL)
            zc_secret_wipe(v->valuestring, strlen(v->valuestring));
        jtree_wipe(v->child);
    }
}

void zc_jtree_free(struct cJSON *tree, bool wipe)
{
    if (wipe)
        jtree_wipe(tree);
    cJSON_Delete(tree);
}

bool zc_jtree_member(const struct cJSON *object, const char *name, const struct cJSON **ret_value)
{
    const cJSON *found = NULL;
    for (const cJSON *v = object->child; v != NULL; v = v->next) {
        if (!jtree_same(v->string, name))
            continue;
        if (found != NULL)
            return false;
        found = v;
    }
    if (found != NULL && !cJSON_IsNull(found))
        *ret_value = found;
    return true;
}

bool zc_jtree_text(const struct cJSON *object, const char *name, char *ret_text, size_t cap)
{
    const cJSON *v = NULL;
    if (!zc_jtree_member(object, name, &v))
        return false;
    if (v == NULL)
        return true;
    size_t len = cJSON_IsString(v) ? strlen(v->valuestring) : cap;
    if (len >= cap)
        return false;
    memcpy(ret_text, v->valuestring, len + 1);
    return true;
}

bool zc_jtree_int(const struct cJSON *object, const char *name, int64_t min, int64_t max,
                  int64_t *ret_value)
{
    const double exact = 9007199254740992.0; /* beyond 2^53 a double skips integers */
    const cJSON *v = NULL;
    if (!zc_jtree_member(object, name, &v))
        return false;
    if (v == NULL)
        return true;
    if (!cJSON_IsNumber(v) || !(v->valuedouble > -exact && v->valuedouble < exact))
        return false;
    int64_t n = (int64_t)v->valuedouble;
    if ((double)n != v->valuedouble || n < min || n > max)
        return false;
    *ret_value = n;
    return true;
}

bool zc_jtree_bool(const struct cJSON *object, const char *name, bool *ret_value)
{
    const cJSON *v = NULL;
    if (!zc_jtree_member(object, name, &v))
        return false;
    if (v == NULL)
        return true;
    if (!cJSON_IsBool(v))
        return false;
    *ret_value = cJSON_IsTrue(v) != 0;
    return true;
}
