/* The key file as JSON: reading it strictly, writing it as tailcat does; see keyfile.h. */
#include "host/keyfile.h"

#include <cjson/cJSON.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "crypto/discokey.h"
#include "crypto/x25519.h"
#include "host/secretfile.h"
#include "tunnel/jtree.h"

#define VALUES_MAX 2000

static int keyfile_refuse(char ret_why[ZC_KEYFILE_WHY_MAX], const char *text)
{
    snprintf(ret_why, ZC_KEYFILE_WHY_MAX, "%s", text);
    return ZC_EBADMSG;
}

void zc_keyfile_derive(struct zc_keyfile *keys)
{
    zc_x25519_public(&keys->private_key, &keys->node_key);
    zc_discokey_derive(&keys->private_key, &keys->disco_private, &keys->disco_key);
}

void zc_keyfile_generate(enum zc_keyfile_role role, struct zc_keyfile *ret_keys)
{
    memset(ret_keys, 0, sizeof(*ret_keys));
    randombytes_buf(ret_keys->private_key.b, sizeof(ret_keys->private_key.b));
    zc_x25519_clamp(&ret_keys->private_key);
    zc_keyfile_derive(ret_keys);
    if (role != ZC_KEYFILE_HUB)
        return;
    randombytes_buf(ret_keys->psk.b, sizeof(ret_keys->psk.b));
    ret_keys->has_psk = true;
    ret_keys->region_kind = ZC_KEYFILE_REGION_ID;
    ret_keys->region_id = -1;
}

void zc_keyfile_done(struct zc_keyfile *keys)
{
    zc_secret_done(&keys->private_key);
    zc_secret_done(&keys->disco_private);
    zc_secret_done(&keys->psk);
}

/* A key of 32 bytes in text form. ret_bytes stays as it was when the member is absent. */
static bool keyfile_key(const cJSON *object, const char *name, enum zc_secret_kind kind,
                        uint8_t ret_bytes[32])
{
    char text[ZC_SECRET_TEXT_MAX] = "";
    bool good = zc_jtree_text(object, name, text, sizeof(text)) &&
                (text[0] == '\0' || zc_secret_parse(kind, zc_slice_str(text), ret_bytes) == 0);
    zc_secret_wipe(text, sizeof(text));
    return good;
}

/* A public key that is there must be the one that belongs to the private key. */
static bool keyfile_matches(const struct zc_key *in_file, const struct zc_key *derived)
{
    return zc_secret_is_zero(in_file->b, sizeof(in_file->b)) ||
           zc_secret_key_equal(in_file, derived);
}

static int keyfile_region(const cJSON *public, struct zc_keyfile *keys,
                          char ret_why[ZC_KEYFILE_WHY_MAX])
{
    char wrong[ZC_DERPMAP_WHY_MAX];
    const cJSON *list = NULL;
    int64_t id = 0;
    if (!zc_jtree_member(public, "Region", &list) || (list != NULL && !cJSON_IsArray(list)))
        return keyfile_refuse(ret_why, "has a fault: its Region is not a list");
    if (!zc_jtree_int(public, "RegionID", -1, INT64_MAX, &id))
        return keyfile_refuse(ret_why, "has a fault: its RegionID is not a region number, or -1");
    int count = list != NULL ? cJSON_GetArraySize(list) : 0;
    if (count > 1)
        return keyfile_refuse(ret_why, "has a fault: its Region lists several regions: keep one");
    if (id != 0) {
        keys->region_kind = ZC_KEYFILE_REGION_ID;
        keys->region_id = id;
    }
    if (count == 0)
        return 0;
    if (zc_derpmap_region_parse(list->child, 0, &keys->region, keys->nodes, ZC_KEYFILE_NODES_MAX,
                                wrong) != 0) {
        snprintf(ret_why, ZC_KEYFILE_WHY_MAX, "has a fault: its Region cannot be used: %s", wrong);
        return ZC_EBADMSG;
    }
    if (keys->region.id == 0)
        keys->region.id = 1;
    keys->region_kind = ZC_KEYFILE_REGION_FULL;
    return 0;
}

static int keyfile_read(const cJSON *tree, struct zc_keyfile *keys,
                        char ret_why[ZC_KEYFILE_WHY_MAX])
{
    struct zc_key node = {0}, disco = {0};
    const cJSON *public = NULL;
    if (!keyfile_key(tree, "Private", ZC_SECRET_PRIVATE, keys->private_key.b))
        return keyfile_refuse(ret_why,
                              "has a fault: its Private is not \"privkey:\" and 64 hex digits");
    if (zc_secret_is_zero(keys->private_key.b, sizeof(keys->private_key.b)))
        return keyfile_refuse(ret_why, "has no private key: is it a key file?");
    if (!zc_jtree_member(tree, "Public", &public) || (public != NULL && !cJSON_IsObject(public)))
        return keyfile_refuse(ret_why, "has a fault: its Public is not an object");
    zc_keyfile_derive(keys);
    if (public == NULL)
        return 0;
    if (!keyfile_key(public, "ServerPublic", ZC_SECRET_NODE_KEY, node.b) ||
        !keyfile_key(public, "ServerDiscoPublic", ZC_SECRET_DISCO_KEY, disco.b))
        return keyfile_refuse(ret_why,
                              "has a fault: its ServerPublic or ServerDiscoPublic is not a key");
    if (!keyfile_matches(&node, &keys->node_key) || !keyfile_matches(&disco, &keys->disco_key))
        return keyfile_refuse(
            ret_why, "has a fault: its public keys do not belong to its private key: it is "
                     "damaged, restore it from a copy");
    if (!keyfile_key(public, "PresharedKey", ZC_SECRET_PRESHARED, keys->psk.b))
        return keyfile_refuse(ret_why,
                              "has a fault: its PresharedKey is not \"psk:\" and 64 hex digits");
    keys->has_psk = !zc_secret_is_zero(keys->psk.b, sizeof(keys->psk.b));
    return keyfile_region(public, keys, ret_why);
}

int zc_keyfile_decode(struct zc_slice text, struct zc_keyfile *ret_keys,
                      char ret_why[ZC_KEYFILE_WHY_MAX])
{
    struct zc_keyfile keys = {0};
    const char *wrong = NULL;
    cJSON *tree = NULL;
    int err = zc_jtree_parse(text, VALUES_MAX, &tree, &wrong);
    if (err != 0) {
        snprintf(ret_why, ZC_KEYFILE_WHY_MAX, "is no key file: %s", wrong);
        return err;
    }
    err = keyfile_read(tree, &keys, ret_why);
    if (err == 0)
        *ret_keys = keys;
    zc_jtree_free(tree, true);
    zc_keyfile_done(&keys);
    return err;
}

/* Appends to text; failures add up in err. */
struct keyfile_out {
    struct zc_buf *text;
    int err;
};

static void put_raw(struct keyfile_out *o, const char *raw)
{
    if (o->err == 0)
        o->err = zc_json_put_raw(o->text, raw);
}

static void put_name(struct keyfile_out *o, const char *before, const char *name)
{
    put_raw(o, before);
    put_raw(o, "\"");
    put_raw(o, name);
    put_raw(o, "\": ");
}

static void put_text(struct keyfile_out *o, const char *before, const char *name, const char *value)
{
    put_name(o, before, name);
    if (o->err == 0)
        o->err = zc_json_put_string(o->text, zc_slice_str(value));
}

static void put_int(struct keyfile_out *o, const char *before, const char *name, int64_t value)
{
    put_name(o, before, name);
    if (o->err == 0)
        o->err = zc_json_put_int(o->text, value);
}

static void put_key(struct keyfile_out *o, const char *before, const char *name,
                    enum zc_secret_kind kind, const uint8_t bytes[32])
{
    char text[ZC_SECRET_TEXT_MAX];
    zc_secret_encode(kind, bytes, text);
    put_text(o, before, name, text);
    zc_secret_wipe(text, sizeof(text));
}

static void put_node(struct keyfile_out *o, const struct zc_derpmap_node *n, int64_t region_id)
{
    static const char in[] = ",\n\t\t\t\t\t\t";
    put_text(o, "\n\t\t\t\t\t{\n\t\t\t\t\t\t", "Name", n->name);
    put_int(o, in, "RegionID", region_id);
    put_text(o, in, "HostName", n->host);
    if (n->cert[0] != '\0')
        put_text(o, in, "CertName", n->cert);
    if (n->ipv4[0] != '\0')
        put_text(o, in, "IPv4", n->ipv4);
    if (n->ipv6[0] != '\0')
        put_text(o, in, "IPv6", n->ipv6);
    if (n->stun_port != 0)
        put_int(o, in, "STUNPort", n->stun_port);
    if (n->stun_only)
        put_raw(o, ",\n\t\t\t\t\t\t\"STUNOnly\": true");
    if (n->derp_port != 0)
        put_int(o, in, "DERPPort", n->derp_port);
    if (n->insecure)
        put_raw(o, ",\n\t\t\t\t\t\t\"InsecureForTests\": true");
    put_raw(o, "\n\t\t\t\t\t}");
}

static void put_region(struct keyfile_out *o, const struct zc_keyfile *keys)
{
    const struct zc_derpmap_region *r = &keys->region;
    put_int(o, ",\n\t\t\"Region\": [\n\t\t\t{\n\t\t\t\t", "RegionID", r->id);
    put_text(o, ",\n\t\t\t\t", "RegionCode", r->code);
    put_text(o, ",\n\t\t\t\t", "RegionName", r->name);
    put_raw(o, ",\n\t\t\t\t\"Nodes\": [");
    for (uint32_t i = 0; i < r->nodes_count; i++) {
        put_raw(o, i > 0 ? "," : "");
        put_node(o, &keys->nodes[i], r->id);
    }
    put_raw(o, r->nodes_count > 0 ? "\n\t\t\t\t]" : "]");
    put_raw(o, "\n\t\t\t}\n\t\t]");
}

int zc_keyfile_encode(const struct zc_keyfile *keys, struct zc_buf *ret_text)
{
    struct zc_buf text = {0};
    struct keyfile_out o = {.text = &text};
    /* All at once: growing would leave copies of the secrets behind. */
    o.err = zc_buf_reserve(&text, ZC_KEYFILE_BYTES_MAX);
    put_key(&o, "{\n\t", "Private", ZC_SECRET_PRIVATE, keys->private_key.b);
    put_raw(&o, ",\n\t\"Public\": {");
    put_key(&o, "\n\t\t", "ServerPublic", ZC_SECRET_NODE_KEY, keys->node_key.b);
    put_key(&o, ",\n\t\t", "ServerDiscoPublic", ZC_SECRET_DISCO_KEY, keys->disco_key.b);
    if (keys->has_psk)
        put_key(&o, ",\n\t\t", "PresharedKey", ZC_SECRET_PRESHARED, keys->psk.b);
    if (keys->region_kind == ZC_KEYFILE_REGION_FULL)
        put_region(&o, keys);
    else if (keys->region_kind == ZC_KEYFILE_REGION_ID)
        put_int(&o, ",\n\t\t", "RegionID", keys->region_id);
    put_raw(&o, "\n\t}\n}\n");
    if (o.err != 0) {
        zc_secretfile_done(&text);
        return o.err;
    }
    *ret_text = text;
    return 0;
}
