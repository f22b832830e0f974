/* Token: the text around the map, the encoder, and what else is asked of tokens; see token.h. */
#include "tunnel/token.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "crypto/blake2s.h"
#include "tunnel/cbor.h"
#include "tunnel/token_map.h"

/* Bytes of CBOR in the longest token. */
#define CBOR_MAX ((ZC_TOKEN_TEXT_MAX - 2) * 6 / 8)

static const char token_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static int token_refuse(char ret_why[ZC_TOKEN_WHY_MAX], const char *text)
{
    snprintf(ret_why, ZC_TOKEN_WHY_MAX, "%s", text);
    return ZC_EINVAL;
}

/* What a text that does not begin as a token may be. */
static const char *token_foreign(struct zc_slice text)
{
    static const struct {
        const char *prefix, *why;
    } kinds[] = {
        {"nodekey:", "is a node key, not a token: those begin with \"tc\""},
        {"privkey:", "is a private key, not a token: those begin with \"tc\""},
        {"discokey:", "is a disco key, not a token: those begin with \"tc\""},
        {"psk:", "is a pre-shared key, not a token: those begin with \"tc\""},
        {"tskey-", "is a key for a Tailscale network, not a token: those begin with \"tc\""},
        {"tailcat=", "has \"tailcat=\" in front: leave that out"},
        {"{", "is JSON, perhaps a key file, not a token: those begin with \"tc\""},
        {"TC", "begins with \"TC\", not \"tc\": something changed its letters, copy it again"},
        {"Tc", "begins with \"Tc\", not \"tc\": something changed its letters, copy it again"},
        {"\"", "stands in quotes: leave them out"},
        {" ", "begins with white space: leave that out"},
        {"\t", "begins with white space: leave that out"},
    };
    for (size_t i = 0; i < ZC_ARRAY_LEN(kinds); i++) {
        if (zc_slice_starts(text, zc_slice_str(kinds[i].prefix)))
            return kinds[i].why;
    }
    return "does not begin with \"tc\": it is no token, or its beginning is missing: copy it again";
}

static int token_bad_char(uint8_t c, size_t pos, char ret_why[ZC_TOKEN_WHY_MAX])
{
    const char *what = "a character that no token has: it is damaged, copy it again";
    if (c == '=')
        what = "a \"=\": tokens have no padding, leave it out";
    else if (c == '+' || c == '/')
        what = "a \"+\" or \"/\": it was changed to another base64 alphabet, copy it again";
    else if (c == '.')
        what = "a dot, as a DNS name has: names are not looked up, give the token itself";
    else if (c == ' ' || (c >= '\t' && c <= '\r'))
        what = "white space inside: it must be one piece on one line";
    snprintf(ret_why, ZC_TOKEN_WHY_MAX, "has at character %zu %s", pos + 1, what);
    return ZC_EINVAL;
}

/* Decodes the base64url in text from index 2 on. */
static int token_base64(struct zc_slice text, uint8_t ret_data[CBOR_MAX], size_t *ret_len,
                        char ret_why[ZC_TOKEN_WHY_MAX])
{
    uint32_t bits = 0;
    unsigned count = 0;
    size_t len = 0;
    for (size_t i = 2; i < text.len; i++) {
        const char *digit = memchr(token_digits, text.data[i], sizeof(token_digits) - 1);
        if (digit == NULL)
            return token_bad_char(text.data[i], i, ret_why);
        bits = bits << 6 | (uint32_t)(digit - token_digits);
        count += 6;
        if (count >= 8) {
            count -= 8;
            ret_data[len++] = (uint8_t)(bits >> count);
            bits &= (1u << count) - 1;
        }
    }
    if (count == 6)
        return token_refuse(ret_why, "has an impossible length: it was cut, or a character is "
                                     "missing or too many; copy it again");
    if (bits != 0)
        return token_refuse(ret_why, "has a last character that cannot stand there: it was cut or "
                                     "changed; copy it again");
    *ret_len = len;
    return 0;
}

int zc_token_decode(struct zc_slice text, struct zc_token *ret_token,
                    char ret_why[ZC_TOKEN_WHY_MAX])
{
    uint8_t cbor[CBOR_MAX];
    struct zc_token token;
    size_t len = 0;
    if (text.len == 0)
        return token_refuse(ret_why, "is empty");
    if (!zc_slice_starts(text, zc_slice_str("tc")))
        return token_refuse(ret_why, token_foreign(text));
    if (text.len > ZC_TOKEN_TEXT_MAX) {
        snprintf(ret_why, ZC_TOKEN_WHY_MAX,
                 "is %zu characters long, more than the %d that a token may have: it is no token, "
                 "or several",
                 text.len, ZC_TOKEN_TEXT_MAX);
        return ZC_EINVAL;
    }
    int err = token_base64(text, cbor, &len, ret_why);
    if (err == 0 && len == 0)
        err = token_refuse(ret_why, "was cut: nothing follows its \"tc\"; copy it again");
    if (err == 0)
        err = zc_token_map_decode(zc_slice(cbor, len), &token, ret_why);
    if (err == 0)
        *ret_token = token;
    zc_secret_wipe(cbor, sizeof(cbor));
    zc_token_done(&token);
    return err;
}

int zc_token_encode(const struct zc_token *token, char ret_text[ZC_TOKEN_TEXT_MAX + 1])
{
    uint8_t cbor[CBOR_MAX];
    size_t len = 0;
    char *out = ret_text;
    int err = zc_token_map_encode(token, cbor, sizeof(cbor), &len);
    if (err != 0)
        goto done;
    *out++ = 't';
    *out++ = 'c';
    uint32_t bits = 0;
    unsigned count = 0;
    for (size_t i = 0; i < len; i++) {
        bits = bits << 8 | cbor[i];
        for (count += 8; count >= 6; count -= 6)
            *out++ = token_digits[bits >> (count - 6) & 63];
    }
    if (count > 0)
        *out++ = token_digits[bits << (6 - count) & 63];
    *out = '\0';
done:
    zc_secret_wipe(cbor, sizeof(cbor));
    return err;
}

int zc_token_joinable(const struct zc_token *token, char ret_why[ZC_TOKEN_WHY_MAX])
{
    if (!token->has_disco_key)
        return token_refuse(ret_why, "lacks the hub's disco key: it was made by a version too old "
                                     "to join; make a new one there");
    if (token->regions_count == 0) {
        if (token->region_id > 0)
            return 0;
        return token_refuse(ret_why, "names no relay, so the hub cannot be reached with it: make "
                                     "a new one there");
    }
    const struct zc_derpmap_region *r = &token->regions[0];
    for (uint32_t i = 0; i < r->nodes_count; i++) {
        const struct zc_derpmap_node *n = &token->nodes[r->nodes_first + i];
        if (!n->stun_only && n->host[0] != '\0')
            return 0;
    }
    return token_refuse(ret_why, "names a region without any relay: make a new one at the hub");
}

static bool token_blank(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

int zc_token_line(struct zc_slice file, struct zc_slice *ret_text, char ret_why[ZC_TOKEN_WHY_MAX])
{
    struct zc_slice t = file;
    if (zc_slice_starts(t, zc_slice_str("\xff\xfe")) ||
        zc_slice_starts(t, zc_slice_str("\xfe\xff")))
        return token_refuse(ret_why, "is UTF-16 text: save it as UTF-8 or plain ASCII");
    if (zc_slice_starts(t, zc_slice_str("\xef\xbb\xbf")))
        t = zc_slice(t.data + 3, t.len - 3);
    while (t.len > 0 && token_blank(t.data[0]))
        t = zc_slice(t.data + 1, t.len - 1);
    while (t.len > 0 && token_blank(t.data[t.len - 1]))
        t.len--;
    if (t.len == 0)
        return token_refuse(ret_why, "is empty: it wants one line, the token that the hub made");
    if (memchr(t.data, '\n', t.len) != NULL || memchr(t.data, '\r', t.len) != NULL)
        return token_refuse(ret_why, "has several lines: it wants one, the token alone");
    *ret_text = t;
    return 0;
}

void zc_token_fingerprint(struct zc_slice text, char ret_hex[ZC_TOKEN_FINGERPRINT_MAX])
{
    uint8_t hash[ZC_BLAKE2S_BYTES];
    zc_blake2s_hash2(zc_slice_str("zmqcat token\n"), text, hash);
    zc_text_hex(ret_hex, zc_slice(hash, 8));
    ret_hex[16] = '\0';
}

void zc_token_done(struct zc_token *token)
{
    zc_secret_done(&token->psk);
}
