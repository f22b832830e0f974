/* Waiters with a filter, see group.h. */
#include "zmqc/group.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static struct zc_group *at(struct zc_list *l)
{
    return ZC_CONTAINER(l, struct zc_group, link);
}

static struct zc_message *first(const struct zc_mailbox *mb)
{
    struct zc_list *l = zc_list_first(&mb->queue);
    return l != NULL ? ZC_CONTAINER(l, struct zc_message, link) : NULL;
}

static struct zc_message *after(const struct zc_mailbox *mb, const struct zc_message *m)
{
    struct zc_list *l = m->link.next;
    return l != &mb->queue ? ZC_CONTAINER(l, struct zc_message, link) : NULL;
}

static void stand(struct zc_group *g, struct zc_message *m)
{
    g->at = m;
    if (m != NULL)
        m->watched = true;
}

static void group_free(struct zc_mailbox *mb, struct zc_group *g)
{
    zc_list_remove(&g->link);
    mb->groups_count--;
    free(g->filter);
    free(g->near);
    free(g);
}

void zc_group_free_all(struct zc_mailbox *mb)
{
    while (!zc_list_empty(&mb->groups))
        group_free(mb, at(mb->groups.next));
}

/* The one that has been without waiters longest; NULL: all have some. */
static struct zc_group *idle(const struct zc_mailbox *mb)
{
    for (struct zc_list *l = mb->groups.next; l != &mb->groups; l = l->next) {
        if (at(l)->waiting == 0)
            return at(l);
    }
    return NULL;
}

static struct zc_group *group_new(struct zc_mailbox *mb, struct zc_filter *filter)
{
    struct zc_group *g = mb->groups_count < ZC_GROUPS_MAX ? NULL : idle(mb);
    if (g != NULL) {
        group_free(mb, g);
        mb->groups_idle--;
    }
    g = mb->groups_count < ZC_GROUPS_MAX ? calloc(1, sizeof(*g)) : NULL;
    if (g == NULL)
        return NULL;
    zc_list_init(&g->line.waiters);
    g->filter = filter;
    g->returned = true;
    stand(g, first(mb));
    zc_list_push(&mb->groups, &g->link);
    mb->groups_count++;
    return g;
}

struct zc_group *zc_group_join(struct zc_mailbox *mb, struct zc_filter *filter)
{
    struct zc_group *g = NULL;
    for (struct zc_list *l = mb->groups.next; g == NULL && l != &mb->groups; l = l->next) {
        if (zc_filter_equal(at(l)->filter, filter))
            g = at(l);
    }
    bool known = g != NULL;
    if (!known)
        g = group_new(mb, filter);
    if (known || g == NULL)
        free(filter);
    if (g != NULL) {
        mb->groups_idle -= known && g->waiting == 0;
        g->waiting++;
    }
    return g;
}

void zc_group_leave(struct zc_mailbox *mb, struct zc_group *g)
{
    if (--g->waiting > 0)
        return;
    zc_list_remove(&g->link);
    zc_list_push(&mb->groups, &g->link);
    if (++mb->groups_idle > ZC_GROUPS_IDLE) {
        group_free(mb, idle(mb));
        mb->groups_idle--;
    }
}

/* Into near, at its place; the youngest makes room. */
static void near_add(struct zc_group *g, struct zc_message *m)
{
    if (g->near_len == ZC_GROUP_NEAR) {
        g->more = true;
        if (m->seq > g->near[0]->seq)
            return;
        memmove(g->near, g->near + 1, --g->near_len * sizeof(g->near[0]));
    }
    uint32_t i = g->near_len++;
    for (; i > 0 && g->near[i - 1]->seq < m->seq; i--)
        g->near[i] = g->near[i - 1];
    g->near[i] = m;
    m->watched = true;
}

static void near_remove(struct zc_group *g, const struct zc_message *m)
{
    uint32_t i = g->near_len;
    while (i > 0 && g->near[i - 1]->seq < m->seq)
        i--;
    if (i == 0 || g->near[i - 1] != m)
        return;
    g->near_len--;
    memmove(g->near + i - 1, g->near + i, (g->near_len - (i - 1)) * sizeof(g->near[0]));
}

/* A look at all that came back: the oldest match, and with memory for it the next ones. */
static struct zc_message *look_at_returned(const struct zc_mailbox *mb, struct zc_group *g,
                                           uint64_t *looked)
{
    struct zc_message *best = NULL;
    if (g->near == NULL && mb->returned.len > ZC_GROUP_NEAR)
        g->near = malloc(ZC_GROUP_NEAR * sizeof(struct zc_message *));
    g->known = g->near != NULL;
    g->near_len = 0;
    g->more = false;
    for (uint32_t i = 0; i < mb->returned.len; i++) {
        struct zc_message *m = ZC_CONTAINER(mb->returned.nodes[i], struct zc_message, order);
        if (g->near == NULL && best != NULL && m->seq > best->seq)
            continue;
        if (!zc_filter_allows(g->filter, m->from))
            continue;
        if (best == NULL || m->seq < best->seq)
            best = m;
        if (g->near != NULL)
            near_add(g, m);
    }
    *looked += mb->returned.len;
    return best;
}

/* The oldest match among what came back. */
static struct zc_message *find_returned(const struct zc_mailbox *mb, struct zc_group *g,
                                        uint64_t *looked)
{
    g->followed = 0;
    if (!g->known || (g->near_len == 0 && g->more))
        return look_at_returned(mb, g, looked);
    ++*looked;
    return g->near_len > 0 ? g->near[g->near_len - 1] : NULL;
}

struct zc_message *zc_group_find(struct zc_mailbox *mb, struct zc_group *g, uint64_t *looked)
{
    struct zc_message *back = g->returned ? find_returned(mb, g, looked) : NULL;
    struct zc_message *m = g->at;
    g->returned = back != NULL;
    for (; m != NULL && !zc_filter_allows(g->filter, m->from); m = after(mb, m))
        ++*looked;
    if (m != g->at)
        stand(g, m);
    return back != NULL && (m == NULL || back->seq < m->seq) ? back : m;
}

struct zc_row *zc_group_find_row(const struct zc_mailbox *mb, struct zc_group *g, uint64_t *looked)
{
    struct zc_row *r = zc_rows_from(&mb->rows, g->row_seq);
    for (; r != NULL && !zc_filter_allows(g->filter, zc_row_from(r));
         r = zc_rows_next(&mb->rows, r))
        ++*looked;
    g->row_seq = r != NULL ? zc_row_seq(r) : zc_rows_last(&mb->rows) + 1;
    return r;
}

void zc_group_rested(struct zc_mailbox *mb, uint64_t seq)
{
    for (struct zc_list *l = mb->groups.next; l != &mb->groups; l = l->next) {
        if (at(l)->row_seq > seq)
            at(l)->row_seq = seq;
    }
}

void zc_group_pushed(struct zc_mailbox *mb, struct zc_message *m)
{
    for (struct zc_list *l = mb->groups.next; l != &mb->groups; l = l->next) {
        if (at(l)->at == NULL)
            stand(at(l), m);
    }
}

/* m came back into the queue, before some that g has looked at. */
static void step_back(struct zc_group *g, struct zc_message *m)
{
    if ((g->at == NULL || g->at->seq > m->seq) && zc_filter_allows(g->filter, m->from))
        stand(g, m);
}

/* m, which g wants, is in `returned`. Many in a row are left to the next look. */
static void follow(struct zc_group *g, struct zc_message *m)
{
    g->returned = true;
    g->known = g->known && ++g->followed <= ZC_GROUP_NEAR;
    /* Those that near does not have are younger than all in it. */
    if (g->known && (!g->more || (g->near_len > 0 && m->seq < g->near[0]->seq)))
        near_add(g, m);
}

void zc_group_returned(struct zc_mailbox *mb, struct zc_message *m)
{
    for (struct zc_list *l = mb->groups.next; l != &mb->groups; l = l->next) {
        struct zc_group *g = at(l);
        if (!m->returned)
            step_back(g, m);
        else if ((g->known || !g->returned) && zc_filter_allows(g->filter, m->from))
            follow(g, m);
    }
}

void zc_group_leaving(struct zc_mailbox *mb, struct zc_message *m)
{
    if (!m->watched)
        return;
    m->watched = false;
    struct zc_message *next = m->returned ? NULL : after(mb, m); /* `at` is in the queue */
    for (struct zc_list *l = mb->groups.next; l != &mb->groups; l = l->next) {
        if (at(l)->at == m)
            stand(at(l), next);
        if (at(l)->known)
            near_remove(at(l), m);
    }
}

bool zc_group_wants(const struct zc_mailbox *mb, uint64_t from)
{
    for (struct zc_list *l = mb->groups.next; l != &mb->groups; l = l->next) {
        if (at(l)->waiting > 0 && zc_filter_allows(at(l)->filter, from))
            return true;
    }
    return false;
}

bool zc_group_awaits(const struct zc_mailbox *mb, uint64_t from)
{
    for (struct zc_list *l = mb->groups.next; l != &mb->groups; l = l->next) {
        if (!zc_list_empty(&at(l)->line.waiters) && zc_filter_allows(at(l)->filter, from))
            return true;
    }
    return false;
}
