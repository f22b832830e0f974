/* The names that sessions send under, and filters over them: which senders each lets pass. */
#include "model.h"

static const char *const names[SENDERS] = {"@", "sim", "ann", "bob"}; /* "@": no hello yet */

/* Bits of senders; OWN: who asks. */
enum { AT = 1, SIM = 2, ANN = 4, BOB = 8, ALL = 15, OWN = 16 };

static const struct {
    const char *text;
    uint8_t passes;
    bool others; /* all but those */
} filters[] = {
    {"!nobody", ALL, false},
    {"@, sim,ann ,bob", ALL, false},
    {"!sim, *", ALL, false},
    {"sim", SIM, false},
    {"ann, @", ANN | AT, false},
    {"!sim", SIM, true},
    {" ! bob,!@", BOB | AT, true},
    {"~", OWN, false},
    {"!.", OWN, true},
    {"ann, bob, *, sim", SIM, false},
    {"!bob, !, @, bob", AT | BOB, false},
    {"!ann, bob, ann", ANN | BOB, false},
    {"bob, ann, !bob", ANN, false},
};

struct zc_slice sender_name(uint8_t sender)
{
    return zc_slice_str(names[sender]);
}

uint8_t sender_any(struct world *w)
{
    return (uint8_t)rnd_range(&w->rnd, 1, SENDERS - 1);
}

struct zc_slice sender_filter(struct world *w, const struct conn *c, uint8_t *ret_excluded)
{
    /* Filters that let all pass: turns and order must be as without them. */
    size_t few = rnd_one_in(&w->rnd, 2) ? 3 : sizeof filters / sizeof filters[0];
    size_t i = rnd_below(&w->rnd, few);
    uint8_t passes = filters[i].passes;
    if (passes & OWN)
        passes = (uint8_t)(1u << c->sender);
    *ret_excluded = (uint8_t)(ALL & (filters[i].others ? passes : ~passes));
    return zc_slice_str(filters[i].text);
}

bool sender_passes(const struct want *want, const struct message *m)
{
    return (want->excluded >> m->sender & 1) == 0;
}
