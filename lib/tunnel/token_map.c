/*
 * Reads the map of a token. Strict where readers may differ: a field twice, null for a
 * value, other types than the schema's. Fields that the schema does not name are stepped over.
 */
#include "tunnel/token_map.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "tunnel/cbor.h"

#define FIELDS_MAX 32 /* in one map */

struct token_reader {
    struct zc_cbor cbor;
    struct zc_token *token;
    char *why;
};

/* One map on its way: the keys so far, to find one that stands there twice. */
struct token_fields {
    uint64_t left;
    uint32_t count;
    struct zc_slice keys[FIELDS_MAX];
};

static bool token_fail(struct token_reader *r, const char *text)
{
    snprintf(r->why, ZC_TOKEN_WHY_MAX, "%s", text);
    return false;
}

static bool token_damaged(struct token_reader *r)
{
    if (r->cbor.cut)
        return token_fail(r, "was cut: its end is missing; copy it again");
    snprintf(r->why, ZC_TOKEN_WHY_MAX, "is damaged or of another kind: %s", r->cbor.error);
    return false;
}

/* The field `name` (a letter of the schema) is not as it must be. */
static bool token_field_bad(struct token_reader *r, char name, const char *wanted)
{
    snprintf(r->why, ZC_TOKEN_WHY_MAX,
             "is damaged or of another version: its field \"%c\" is not %s", name, wanted);
    return false;
}

static bool token_map_open(struct token_reader *r, const struct zc_cbor_item *map,
                           struct token_fields *ret_fields)
{
    ret_fields->left = map->value;
    ret_fields->count = 0;
    if (map->value <= FIELDS_MAX)
        return true;
    if (map->value > r->cbor.rest.len / 2) {
        r->cbor.cut = true;
        return token_damaged(r);
    }
    return token_fail(r, "is damaged or of another version: it has too many fields");
}

/* The next key, as its letter or 0 when it is none of the schema's, and the head of its value. */
static bool token_map_next(struct token_reader *r, struct token_fields *f, char *ret_name,
                           struct zc_cbor_item *ret_value)
{
    struct zc_cbor_item key;
    const uint8_t *start = r->cbor.rest.data;
    if (!zc_cbor_next(&r->cbor, &key))
        return token_damaged(r);
    if (key.type != ZC_CBOR_TEXT && key.type != ZC_CBOR_UINT && key.type != ZC_CBOR_NINT)
        return token_fail(r, "is damaged or of another kind: a field's name is not text");
    struct zc_slice raw = zc_slice(start, (size_t)(r->cbor.rest.data - start));
    for (uint32_t i = 0; i < f->count; i++) {
        if (zc_slice_eq(f->keys[i], raw))
            return token_fail(r, "is damaged or forged: a field stands in it twice");
    }
    f->keys[f->count++] = raw;
    f->left--;
    *ret_name = key.type == ZC_CBOR_TEXT && key.bytes.len == 1 ? (char)key.bytes.data[0] : 0;
    return zc_cbor_next(&r->cbor, ret_value) || token_damaged(r);
}

static bool token_skip(struct token_reader *r, const struct zc_cbor_item *item, unsigned depth)
{
    return zc_cbor_skip(&r->cbor, item, depth) || token_damaged(r);
}

static bool token_text(struct token_reader *r, char name, const struct zc_cbor_item *item,
                       char ret_text[ZC_DERPMAP_STRING_MAX + 1])
{
    if (item->type != ZC_CBOR_TEXT)
        return token_field_bad(r, name, "text");
    if (item->bytes.len > ZC_DERPMAP_STRING_MAX)
        return token_field_bad(r, name, "at most 255 bytes long");
    if (item->bytes.len > 0 && memchr(item->bytes.data, 0, item->bytes.len) != NULL)
        return token_field_bad(r, name, "text without zero bytes");
    memcpy(ret_text, item->bytes.data, item->bytes.len);
    ret_text[item->bytes.len] = '\0';
    return true;
}

static bool token_int(struct token_reader *r, char name, const struct zc_cbor_item *item,
                      int64_t *ret_value)
{
    return zc_cbor_int(item, ret_value) || token_field_bad(r, name, "a whole number in range");
}

static bool token_port(struct token_reader *r, char name, const struct zc_cbor_item *item,
                       int64_t least, int32_t *ret_port)
{
    int64_t v;
    if (!token_int(r, name, item, &v))
        return false;
    if (v < least || v > 65535)
        return token_field_bad(r, name, "a port number");
    *ret_port = (int32_t)v;
    return true;
}

static bool token_key(struct token_reader *r, char name, const struct zc_cbor_item *item,
                      uint8_t ret_bytes[32])
{
    if (item->type != ZC_CBOR_BYTES || item->bytes.len != 32)
        return token_field_bad(r, name, "a key of 32 bytes");
    memcpy(ret_bytes, item->bytes.data, 32);
    return true;
}

static bool token_node_field(struct token_reader *r, struct zc_derpmap_node *n, char name,
                             const struct zc_cbor_item *v)
{
    int64_t region_id;
    switch (name) {
    case 'n':
        return token_text(r, name, v, n->name);
    case 'i':
        return token_int(r, name, v, &region_id);
    case 'h':
        if (!token_text(r, name, v, n->host))
            return false;
        return zc_derpmap_host_valid(n->host) || token_field_bad(r, name, "a host name");
    case 't':
        return token_text(r, name, v, n->cert);
    case '4':
        return token_text(r, name, v, n->ipv4);
    case '6':
        return token_text(r, name, v, n->ipv6);
    case 's':
        return token_port(r, name, v, INT32_MIN, &n->stun_port);
    case 'd':
        return token_port(r, name, v, 0, &n->derp_port);
    case 'x':
        if (v->type != ZC_CBOR_SIMPLE || v->number ||
            (v->value != ZC_CBOR_FALSE && v->value != ZC_CBOR_TRUE))
            return token_field_bad(r, name, "true or false");
        n->insecure = v->value == ZC_CBOR_TRUE;
        return true;
    default:
        return token_skip(r, v, 5);
    }
}

static bool token_node(struct token_reader *r, const struct zc_cbor_item *item)
{
    struct token_fields fields;
    struct zc_cbor_item value;
    char name;
    if (item->type != ZC_CBOR_MAP)
        return token_field_bad(r, 'N', "a list of relays");
    if (r->token->nodes_count == ZC_TOKEN_NODES_MAX)
        return token_fail(r, "names more relays than the 16 that a token may have");
    struct zc_derpmap_node *n = &r->token->nodes[r->token->nodes_count++];
    *n = (struct zc_derpmap_node){0};
    if (!token_map_open(r, item, &fields))
        return false;
    while (fields.left > 0) {
        if (!token_map_next(r, &fields, &name, &value) || !token_node_field(r, n, name, &value))
            return false;
    }
    if (n->name[0] == '\0')
        memcpy(n->name, n->host, sizeof(n->name));
    return true;
}

static bool token_nodes(struct token_reader *r, struct zc_derpmap_region *region,
                        const struct zc_cbor_item *list)
{
    struct zc_cbor_item item;
    if (list->type != ZC_CBOR_ARRAY)
        return token_field_bad(r, 'N', "a list of relays");
    for (uint64_t i = 0; i < list->value; i++) {
        if (!zc_cbor_next(&r->cbor, &item))
            return token_damaged(r);
        if (!token_node(r, &item))
            return false;
        region->nodes_count++;
    }
    return true;
}

static bool token_region(struct token_reader *r, const struct zc_cbor_item *item)
{
    struct token_fields fields;
    struct zc_cbor_item v;
    char name;
    if (item->type != ZC_CBOR_MAP)
        return token_field_bad(r, 'r', "a list of regions");
    if (r->token->regions_count == ZC_TOKEN_REGIONS_MAX)
        return token_fail(r, "names more regions than the 16 that a token may have");
    struct zc_derpmap_region *region = &r->token->regions[r->token->regions_count++];
    *region = (struct zc_derpmap_region){.nodes_first = r->token->nodes_count};
    if (!token_map_open(r, item, &fields))
        return false;
    while (fields.left > 0) {
        bool good = token_map_next(r, &fields, &name, &v);
        if (good && name == 'i')
            good = token_int(r, name, &v, &region->id);
        else if (good && name == 'c')
            good = token_text(r, name, &v, region->code);
        else if (good && name == 'm')
            good = token_text(r, name, &v, region->name);
        else if (good && name == 'N')
            good = token_nodes(r, region, &v);
        else if (good)
            good = token_skip(r, &v, 3);
        if (!good)
            return false;
    }
    if (region->id == 0)
        region->id = r->token->regions_count;
    if (region->code[0] == '\0')
        snprintf(region->code, sizeof(region->code), "%lld", (long long)region->id);
    return true;
}

static bool token_regions(struct token_reader *r, const struct zc_cbor_item *list)
{
    struct zc_cbor_item item;
    if (list->type != ZC_CBOR_ARRAY)
        return token_field_bad(r, 'r', "a list of regions");
    for (uint64_t i = 0; i < list->value; i++) {
        if (!zc_cbor_next(&r->cbor, &item))
            return token_damaged(r);
        if (!token_region(r, &item))
            return false;
    }
    return true;
}

static bool token_top_field(struct token_reader *r, char name, const struct zc_cbor_item *v)
{
    struct zc_token *t = r->token;
    switch (name) {
    case 'p':
        return token_key(r, name, v, t->node_key.b);
    case 'k':
        return token_key(r, name, v, t->disco_key.b);
    case 'q':
        return token_key(r, name, v, t->psk.b);
    case 'r':
        return token_regions(r, v);
    case 'i':
        return token_int(r, name, v, &t->region_id);
    default:
        return token_skip(r, v, 1);
    }
}

int zc_token_map_decode(struct zc_slice cbor, struct zc_token *ret_token,
                        char ret_why[ZC_TOKEN_WHY_MAX])
{
    struct token_reader r = {.token = ret_token, .why = ret_why};
    struct token_fields fields;
    struct zc_cbor_item top, value;
    char name;
    memset(ret_token, 0, sizeof(*ret_token));
    zc_cbor_init(&r.cbor, cbor);
    if (!zc_cbor_next(&r.cbor, &top)) {
        token_damaged(&r);
        return ZC_EINVAL;
    }
    if (top.type != ZC_CBOR_MAP) {
        token_fail(&r, "is of another kind or version: it holds no map of fields");
        return ZC_EINVAL;
    }
    if (!token_map_open(&r, &top, &fields))
        return ZC_EINVAL;
    while (fields.left > 0) {
        if (!token_map_next(&r, &fields, &name, &value) || !token_top_field(&r, name, &value))
            return ZC_EINVAL;
    }
    ret_token->has_disco_key = !zc_secret_is_zero(ret_token->disco_key.b, 32);
    ret_token->has_psk = !zc_secret_is_zero(ret_token->psk.b, 32);
    bool good = true;
    if (r.cbor.rest.len > 0)
        good = token_fail(&r, "goes on after its end: perhaps two tokens run together");
    else if (zc_secret_is_zero(ret_token->node_key.b, 32))
        good = token_fail(&r, "lacks the hub's key: it is damaged or of another version");
    return good ? 0 : ZC_EINVAL;
}
