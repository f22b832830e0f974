/* What became of each line of `put --lines`. */
#include <inttypes.h>
#include <stdio.h>

#include "lines.h"
#include "out.h"
#include "say.h"

static const char *fate_name(enum zc_lines_fate fate)
{
    static const char *const names[] = {"accepted", "refused", "unknown"};
    return names[fate];
}

static void add_range(struct zc_buf *b, const struct zc_lines_run *r, const char *gap)
{
    char text[96];
    int n = r->first == r->last
                ? snprintf(text, sizeof text, "%s%s %" PRIu64, gap, fate_name(r->fate), r->first)
                : snprintf(text, sizeof text, "%s%s %" PRIu64 "-%" PRIu64, gap, fate_name(r->fate),
                           r->first, r->last);
    if (zc_buf_append(b, text, (size_t)n) != 0)
        b->len = 0;
}

void zc_lines_report(const struct zc_lines *l)
{
    struct zc_buf b = {0};
    char text[96];
    for (size_t i = 0; i < l->runs_count; i++)
        add_range(&b, &l->runs[i], i > 0 ? ", " : "");
    fprintf(stderr, "zmqcat: put: lines: %.*s%snot sent: from line %" PRIu64 " on\n", (int)b.len,
            b.data != NULL ? (const char *)b.data : "", l->runs_count > 0 ? "; " : "", l->sent + 1);
    zc_buf_done(&b);
    uint64_t first =
        l->runs_count > 0 && l->runs[0].fate == ZC_LINES_ACCEPTED ? l->runs[0].last + 1 : 1;
    bool rest = l->runs_count <= 1 || (l->runs_count == 2 && l->runs[1].fate == ZC_LINES_REFUSED);
    snprintf(text, sizeof text,
             "all lines from %" PRIu64 " on are still to be put (tail -n +%" PRIu64 ")", first,
             first);
    if (rest && (l->runs_count == 0 || l->runs[l->runs_count - 1].fate != ZC_LINES_UNKNOWN))
        zc_say_hint(text);
}

int zc_lines_report_json(const struct zc_lines *l)
{
    struct zc_out out;
    char text[128];
    zc_out_init(&out, NULL);
    snprintf(text, sizeof text, "{\"accepted\":%" PRIu64 ",\"sent\":%" PRIu64 ",\"lines\":[",
             l->accepted, l->sent);
    zc_out_str(&out, text);
    for (size_t i = 0; i < l->runs_count; i++) {
        const struct zc_lines_run *r = &l->runs[i];
        snprintf(text, sizeof text,
                 "%s{\"first\":%" PRIu64 ",\"last\":%" PRIu64 ",\"fate\":\"%s\"}", i > 0 ? "," : "",
                 r->first, r->last, fate_name(r->fate));
        zc_out_str(&out, text);
    }
    zc_out_str(&out, "]}\n");
    int status = zc_out_flush(&out);
    zc_out_done(&out);
    return status;
}
