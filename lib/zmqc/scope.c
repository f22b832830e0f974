/* Scopes, see scope.h. */
#include "zmqc/scope.h"

#include <stdlib.h>
#include <string.h>

#include "base/le.h"
#include "crypto/blake2s.h"
#include "zmqc/lease.h"

#define LOWEST (UINT64_C(1) << 63)
#define DIGITS 19 /* of every number from LOWEST on, or one more */

/* Without the port of a TCP peer, which is another one after each reconnect. */
static size_t identity_len(const char *identity)
{
    const char *port = strrchr(identity, ':');
    return strncmp(identity, "tcp:", 4) == 0 && port != NULL ? (size_t)(port - identity)
                                                             : strlen(identity);
}

uint64_t zc_scope_number(const char *identity, struct zc_slice text)
{
    static const char key[] = "zmqcat scope";
    struct zc_blake2s h;
    uint8_t out[8], len[8];
    size_t n = identity_len(identity);
    zc_le_put(len, n, 8);
    zc_blake2s_init(&h, sizeof(out), key, sizeof(key) - 1);
    zc_blake2s_update(&h, len, sizeof(len));
    zc_blake2s_update(&h, identity, n);
    zc_blake2s_update(&h, text.data, text.len);
    zc_blake2s_final(&h, out);
    return zc_le_get(out, 8) | LOWEST;
}

static struct zc_scope *find(const struct zc_broker *b, uint64_t number)
{
    struct zc_map_node *n = zc_map_first(&b->scopes, number);
    return n != NULL ? ZC_CONTAINER(n, struct zc_scope, node) : NULL;
}

bool zc_scope_join(struct zc_broker *b, struct zc_session *s, struct zc_slice text)
{
    uint64_t number = zc_scope_number(s->identity, text);
    struct zc_scope *scope = find(b, number);
    if (scope == NULL) {
        if ((scope = calloc(1, sizeof(*scope))) == NULL)
            return false;
        zc_list_init(&scope->deliveries);
        scope->number = number;
        if (zc_map_insert(&b->scopes, &scope->node, number) != 0) {
            free(scope);
            return false;
        }
    }
    scope->sessions++;
    s->scope = scope;
    s->owner = number;
    s->id_head_len = 0;
    return true;
}

void zc_scope_drop(struct zc_broker *b, struct zc_scope *scope)
{
    if (scope->sessions > 0 || scope->held > 0)
        return;
    zc_map_remove(&b->scopes, &scope->node);
    free(scope);
}

void zc_scope_leave(struct zc_broker *b, struct zc_session *s)
{
    if (s->scope == NULL)
        return;
    s->scope->sessions--;
    zc_scope_drop(b, s->scope);
    s->scope = NULL;
}

bool zc_scope_owns(struct zc_slice id)
{
    uint64_t number = 0;
    size_t i = 1;
    if (id.len < DIGITS + 2 || id.data[0] != 's')
        return false;
    /* Of most ids, which are of sessions, the colon tells. */
    if (id.data[1 + DIGITS] != ':' && (id.len == DIGITS + 2 || id.data[2 + DIGITS] != ':'))
        return false;
    for (; i < id.len && id.data[i] >= '0' && id.data[i] <= '9'; i++) {
        uint64_t digit = (uint64_t)(id.data[i] - '0');
        if (number > (UINT64_MAX - digit) / 10)
            return false;
        number = number * 10 + digit;
    }
    return i < id.len && id.data[i] == ':' && number >= LOWEST;
}

void zc_scope_end_all(struct zc_broker *b)
{
    for (uint32_t i = 0; b->scopes.len > 0; i = i + 1 < b->scopes.cap ? i + 1 : 0) {
        struct zc_map_node *n = b->scopes.buckets[i < b->scopes.cap ? i : 0];
        if (n == NULL)
            continue;
        struct zc_scope *scope = ZC_CONTAINER(n, struct zc_scope, node);
        bool last = false;
        while (!last && !zc_list_empty(&scope->deliveries)) {
            last = scope->held == 1; /* and then the scope is gone */
            zc_lease_return(b, ZC_CONTAINER(scope->deliveries.prev, struct zc_delivery, in_session),
                            0);
        }
    }
    zc_map_done(&b->scopes);
}
