/* Knobs as words, and counts as JSON. */
#include "knobs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum kind { FLAG, COUNT, CHANCE, MS, MBIT, PROTOCOL };

static const struct knob {
    const char *name;
    enum kind kind;
    size_t offset;
    double min, max;
    const char *help;
} knobs[] = {
#define AT(field) offsetof(struct flow_knobs, field)
    {"cut", FLAG, AT(cut), 0, 1, "1: nothing enters; what is under way arrives"},
    {"only", PROTOCOL, AT(protocol), 0, 0,
     "all, tcp, udp, icmp or icmp6: what cut, mtu, loss, duplicate and reorder are for"},
    {"mtu", COUNT, AT(mtu), 0, 65535, "larger IP packets are dropped; 0: none"},
    {"told", FLAG, AT(told), 0, 1, "1: and their sender gets an ICMP message, as from a router"},
    {"loss", CHANCE, AT(loss.ppm), 0, 1, "share of packets that are lost"},
    {"loss_every", COUNT, AT(loss.every), 0, 1e9, "every n-th is lost; another n counts anew"},
    {"lose_next", COUNT, AT(lose_next), 0, 1e9, "so many are lost from now on"},
    {"duplicate", CHANCE, AT(duplicate.ppm), 0, 1, "share of packets that come twice"},
    {"duplicate_every", COUNT, AT(duplicate.every), 0, 1e9, "every n-th comes twice"},
    {"reorder", CHANCE, AT(reorder.ppm), 0, 1, "share of packets that later ones overtake"},
    {"reorder_every", COUNT, AT(reorder.every), 0, 1e9, "later ones overtake every n-th"},
    {"reorder_ms", MS, AT(reorder_ns), 0, FLOW_NS_MAX, "by this much (5)"},
    {"rate_mbit", MBIT, AT(rate_bits), FLOW_BITS_MIN, FLOW_BITS_MAX, "megabits a second; 0: any"},
    {"burst", COUNT, AT(burst), 0, FLOW_BURST_MAX, "bytes that leave at once after a pause"},
    {"queue_packets", COUNT, AT(queue_packets), 1, FLOW_PACKETS_MAX, "that wait for it (1000)"},
    {"queue_bytes", COUNT, AT(queue_bytes), 0, FLOW_BYTES_MAX, "the same in bytes; 0: no bound"},
    {"oldest", FLAG, AT(drop_oldest), 0, 1, "1: a full queue drops its oldest, not the newest"},
    {"delay_ms", MS, AT(delay_ns), 0, FLOW_NS_MAX, "how long every packet is under way"},
    {"jitter_ms", MS, AT(jitter_ns), 0, FLOW_NS_MAX, "more or less; the order stays"},
#undef AT
};

static const struct {
    const char *name;
    uint32_t number;
} protocols[] = {{"all", 0}, {"icmp", 1}, {"tcp", 6}, {"udp", 17}, {"icmp6", 58}};

static bool set_protocol(const char *text, uint32_t *ret_number)
{
    for (size_t i = 0; i < sizeof(protocols) / sizeof(*protocols); i++) {
        if (strcmp(text, protocols[i].name) != 0)
            continue;
        *ret_number = protocols[i].number;
        return true;
    }
    return false;
}

/* A decimal number, in what the knob is stored in. */
static bool number(const struct knob *n, const char *text, double *ret_value)
{
    static const double units[] = {[FLAG] = 1, [COUNT] = 1, [CHANCE] = 1, [MS] = 1e6, [MBIT] = 1e6};
    char *end;
    if (*text == '\0' || strspn(text, "0123456789.") != strlen(text))
        return false;
    double v = strtod(text, &end) * units[n->kind];
    bool whole = n->kind != FLAG && n->kind != COUNT;
    bool off = v == 0 && n->kind == MBIT;
    if (*end != '\0' || v > n->max || (v < n->min && !off))
        return false;
    *ret_value = v;
    return whole || v == (double)(uint64_t)v;
}

static bool set(struct flow_knobs *k, const struct knob *n, const char *text)
{
    char *at = (char *)k + n->offset;
    double v;
    if (n->kind == PROTOCOL)
        return set_protocol(text, (uint32_t *)at);
    if (!number(n, text, &v))
        return false;
    if (n->kind == FLAG)
        *(bool *)at = v != 0;
    else if (n->kind == COUNT)
        *(uint32_t *)at = (uint32_t)v;
    else if (n->kind == CHANCE)
        *(uint32_t *)at = (uint32_t)(v * 1e6 + 0.5);
    else if (n->kind == MS)
        *(int64_t *)at = (int64_t)(v + 0.5);
    else
        *(uint64_t *)at = (uint64_t)(v + 0.5);
    return true;
}

static bool set_word(struct flow_knobs *k, const char *word)
{
    size_t len = strcspn(word, "=");
    if (word[len] == '\0')
        return false;
    for (size_t i = 0; i < sizeof(knobs) / sizeof(*knobs); i++)
        if (strlen(knobs[i].name) == len && memcmp(knobs[i].name, word, len) == 0)
            return set(k, &knobs[i], word + len + 1);
    return false;
}

const char *knobs_read(char *line, struct flow_knobs *k)
{
    struct flow_knobs changed = *k;
    char *rest, *word = strtok_r(line, " \t\r\n", &rest);
    if (word == NULL)
        return "";
    for (; word != NULL; word = strtok_r(NULL, " \t\r\n", &rest))
        if (!set_word(&changed, word))
            return word;
    *k = changed;
    return NULL;
}

void knobs_help(FILE *out)
{
    for (size_t i = 0; i < sizeof(knobs) / sizeof(*knobs); i++)
        fprintf(out, "  %-16s %s\n", knobs[i].name, knobs[i].help);
}

void knobs_counts(FILE *out, const struct flow *f)
{
    const struct flow_counts *c = &f->counts;
    const struct {
        const char *name;
        uint64_t n;
    } rows[] = {
        {"in", c->in},
        {"in_bytes", c->in_bytes},
        {"out", c->out},
        {"out_bytes", c->out_bytes},
        {"cut", c->cut},
        {"too_big", c->too_big},
        {"lost", c->lost},
        {"queue_full", c->queue_full},
        {"overflow", c->overflow},
        {"duplicated", c->duplicated},
        {"reordered", c->reordered},
        {"queued", f->queue.count},
        {"queued_bytes", f->queue.bytes},
        {"under_way", f->line.count + f->behind.count},
        {"late_max_us", (uint64_t)c->late_max_ns / 1000},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        fprintf(out, "%s\"%s\":%" PRIu64, i == 0 ? "{" : ",", rows[i].name, rows[i].n);
    fputc('}', out);
}
