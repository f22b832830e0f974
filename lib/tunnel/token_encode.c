/*
 * Writes the map of a token: fields in the order of the schema, what is empty or can be put back
 * left out, so that the same token is always the same bytes.
 */
#include "tunnel/cbor.h"
#include "tunnel/token_map.h"

static void token_put_text(struct zc_cbor_out *o, const char *name, const char *text)
{
    if (text[0] == '\0')
        return;
    zc_cbor_put_text(o, name);
    zc_cbor_put_text(o, text);
}

static void token_put_int(struct zc_cbor_out *o, const char *name, int64_t value)
{
    if (value == 0)
        return;
    zc_cbor_put_text(o, name);
    zc_cbor_put_int(o, value);
}

static void token_put_node(struct zc_cbor_out *o, const struct zc_derpmap_node *n)
{
    const char *name = n->host[0] == '\0' ? n->name : "";
    zc_cbor_put_head(o, ZC_CBOR_MAP,
                     (name[0] != '\0') + (n->host[0] != '\0') + (n->cert[0] != '\0') +
                         (n->ipv4[0] != '\0') + (n->ipv6[0] != '\0') + (n->stun_port != 0) +
                         (n->derp_port != 0) + (uint64_t)n->insecure);
    token_put_text(o, "n", name);
    token_put_text(o, "h", n->host);
    token_put_text(o, "t", n->cert);
    token_put_text(o, "4", n->ipv4);
    token_put_text(o, "6", n->ipv6);
    token_put_int(o, "s", n->stun_port);
    token_put_int(o, "d", n->derp_port);
    if (n->insecure) {
        zc_cbor_put_text(o, "x");
        zc_cbor_put_head(o, ZC_CBOR_SIMPLE, ZC_CBOR_TRUE);
    }
}

static void token_put_region(struct zc_cbor_out *o, const struct zc_derpmap_node *nodes,
                             uint32_t count)
{
    uint32_t relays = 0;
    for (uint32_t i = 0; i < count; i++)
        relays += !nodes[i].stun_only;
    zc_cbor_put_head(o, ZC_CBOR_MAP, relays > 0);
    if (relays == 0)
        return;
    zc_cbor_put_text(o, "N");
    zc_cbor_put_head(o, ZC_CBOR_ARRAY, relays);
    for (uint32_t i = 0; i < count; i++) {
        if (!nodes[i].stun_only)
            token_put_node(o, &nodes[i]);
    }
}

int zc_token_map_encode(const struct zc_token *t, uint8_t *ret_cbor, size_t cap, size_t *ret_len)
{
    struct zc_cbor_out o = {.data = ret_cbor, .cap = cap};
    zc_cbor_put_head(&o, ZC_CBOR_MAP,
                     1 + (uint64_t)t->has_disco_key + t->has_psk + (t->regions_count > 0) +
                         (t->region_id != 0));
    zc_cbor_put_text(&o, "p");
    zc_cbor_put_bytes(&o, zc_slice(t->node_key.b, 32));
    if (t->has_disco_key) {
        zc_cbor_put_text(&o, "k");
        zc_cbor_put_bytes(&o, zc_slice(t->disco_key.b, 32));
    }
    if (t->has_psk) {
        zc_cbor_put_text(&o, "q");
        zc_cbor_put_bytes(&o, zc_slice(t->psk.b, 32));
    }
    if (t->regions_count > 0) {
        zc_cbor_put_text(&o, "r");
        zc_cbor_put_head(&o, ZC_CBOR_ARRAY, t->regions_count);
    }
    for (uint32_t i = 0; i < t->regions_count; i++) {
        const struct zc_derpmap_region *region = &t->regions[i];
        token_put_region(&o, &t->nodes[region->nodes_first], region->nodes_count);
    }
    token_put_int(&o, "i", t->region_id);
    if (o.full)
        return ZC_ELIMIT;
    *ret_len = o.len;
    return 0;
}
