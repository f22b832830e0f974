/* Lists of requests that wait to be sent or to be answered, oldest first. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "model.h"

bool want_waits(const struct want *want)
{
    return want->op == OP_TAKE || want->op == OP_RESERVE || want->op == OP_READY;
}

struct want *wants_push(struct wants *l, const struct want *want)
{
    if (l->len == l->cap) {
        l->cap = l->cap == 0 ? 8 : 2 * l->cap;
        l->list = realloc(l->list, l->cap * sizeof *l->list);
        ZC_ASSERT(l->list != NULL);
    }
    l->list[l->len] = *want;
    return &l->list[l->len++];
}

void wants_remove(struct wants *l, struct want *want)
{
    size_t at = (size_t)(want - l->list);
    memmove(want, want + 1, (l->len - at - 1) * sizeof *want);
    l->len--;
}

static bool name_fits(const struct world *w, const struct want *want, struct zc_slice name)
{
    if (name.len == 0 || want->op != OP_PUT || want->box < 0)
        return true;
    return zc_slice_is(name, w->boxes[want->box].name);
}

struct want *wants_by_id(struct world *w, struct wants *l, struct zc_slice id, struct zc_slice name)
{
    for (size_t i = 0; i < l->len; i++)
        if (zc_slice_is(id, l->list[i].id) && name_fits(w, &l->list[i], name))
            return &l->list[i];
    return NULL;
}

struct want *wants_for_ok(struct world *w, struct wants *l, struct zc_slice id,
                          struct zc_slice name)
{
    for (size_t i = 0; i < l->len; i++)
        if (zc_slice_is(id, l->list[i].id) && name_fits(w, &l->list[i], name) &&
            !want_waits(&l->list[i]))
            return &l->list[i];
    return NULL;
}

uint32_t wants_waiting(const struct conn *c, int box, bool takes_only)
{
    uint32_t n = 0;
    for (size_t i = 0; i < c->wants.len; i++) {
        const struct want *want = &c->wants.list[i];
        if (want_waits(want) && want->box == box && (!takes_only || want->op == OP_TAKE))
            n++;
    }
    return n;
}
