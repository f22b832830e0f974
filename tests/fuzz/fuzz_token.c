/*
 * Any bytes as a token's text (first byte even) or as the map inside one (odd): what is read must
 * be written and read again as the same token, and its text must not leak into the reason.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "tunnel/token.h"
#include "tunnel/token_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct zc_token first, second;

static void check_same(void)
{
    ZC_ASSERT(memcmp(&first.node_key, &second.node_key, sizeof(first.node_key)) == 0);
    ZC_ASSERT(memcmp(&first.disco_key, &second.disco_key, sizeof(first.disco_key)) == 0);
    ZC_ASSERT(memcmp(&first.psk, &second.psk, sizeof(first.psk)) == 0);
    ZC_ASSERT(first.has_disco_key == second.has_disco_key && first.has_psk == second.has_psk);
    ZC_ASSERT(first.region_id == second.region_id);
    ZC_ASSERT(first.regions_count == second.regions_count);
    ZC_ASSERT(first.nodes_count == second.nodes_count);
    for (uint32_t i = 0; i < first.nodes_count; i++) {
        const struct zc_derpmap_node *a = &first.nodes[i], *b = &second.nodes[i];
        ZC_ASSERT(strcmp(a->host, b->host) == 0 && strcmp(a->cert, b->cert) == 0);
        ZC_ASSERT(strcmp(a->ipv4, b->ipv4) == 0 && strcmp(a->ipv6, b->ipv6) == 0);
        ZC_ASSERT(a->stun_port == b->stun_port && a->derp_port == b->derp_port);
        ZC_ASSERT(a->insecure == b->insecure && !a->stun_only);
        ZC_ASSERT(zc_derpmap_host_valid(a->host));
        ZC_ASSERT(a->host[0] != '\0' || strcmp(a->name, b->name) == 0);
    }
}

static void round_trip(void)
{
    char text[ZC_TOKEN_TEXT_MAX + 1], again[ZC_TOKEN_TEXT_MAX + 1], why[ZC_TOKEN_WHY_MAX] = "";
    ZC_ASSERT(first.nodes_count <= ZC_TOKEN_NODES_MAX);
    ZC_ASSERT(first.regions_count <= ZC_TOKEN_REGIONS_MAX);
    ZC_ASSERT(zc_token_encode(&first, text) == 0);
    ZC_ASSERT(strlen(text) <= ZC_TOKEN_TEXT_MAX);
    ZC_ASSERT(zc_token_decode(zc_slice_str(text), &second, why) == 0);
    check_same();
    ZC_ASSERT(zc_token_encode(&second, again) == 0 && strcmp(text, again) == 0);
    int joinable = zc_token_joinable(&first, why);
    ZC_ASSERT(joinable == 0 || why[0] != '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char why[ZC_TOKEN_WHY_MAX] = "";
    struct zc_slice line;
    if (size == 0)
        return 0;
    size_t len = size - 1;
    uint8_t *copy = malloc(len > 0 ? len : 1); /* exact, for AddressSanitizer */
    ZC_ASSERT(copy != NULL);
    memcpy(copy, data + 1, len);
    int err;
    if (data[0] % 2 == 0) {
        err = zc_token_decode(zc_slice(copy, len), &first, why);
        if (zc_token_line(zc_slice(copy, len), &line, why) == 0)
            ZC_ASSERT(line.len > 0 && line.len <= len);
    } else {
        err = zc_token_map_decode(zc_slice(copy, len), &first, why);
    }
    if (err == 0 && (data[0] % 2 == 0 || len <= 3000))
        round_trip();
    if (err != 0)
        ZC_ASSERT(why[0] != '\0' && strlen(why) < ZC_TOKEN_WHY_MAX);
    free(copy);
    return 0;
}
