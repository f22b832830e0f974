/*
 * Records out of the bytes of one segment. A record with a damaged body is stepped over by its
 * length; behind a damaged head the search tries each multiple of 8, which is linear whatever the
 * bytes are because only a head that passes its salted checksum has its body looked at. What did
 * not pass is damage when a record follows (or a SEAL says that the segment went on), and else the
 * torn tail of a write that a crash cut short.
 */
#include "store/log_priv.h"

static const uint8_t zeros[4096];

void zc_log_scan_start(struct zc_log_scan *scan, uint64_t limit)
{
    struct zc_buf window = scan->window;
    window.len = 0;
    *scan = (struct zc_log_scan){.window = window,
                                 .pos = ZC_SEGMENT_HEAD,
                                 .limit = limit,
                                 .need = ZC_SEGMENT_HEAD + ZC_RECORD_HEAD};
}

static void bad_begin(struct zc_log_scan *scan, uint64_t at)
{
    if (scan->bad)
        return;
    scan->bad = true;
    scan->bad_at = at;
    scan->bad_count = 0;
}

/* The bytes from bad_at to `until` are damaged. */
static void bad_count(struct zc_log_scan *scan, struct zc_segment *s, struct zc_log_status *counts,
                      uint64_t until)
{
    if (scan->bad && until > scan->bad_at) {
        counts->damaged += scan->bad_count > 0 ? scan->bad_count : 1;
        counts->damaged_bytes += until - scan->bad_at;
        s->damaged = true;
    }
    scan->bad = false;
}

/* Steps over `n` bytes that are in the window, or its end. */
static void skip(struct zc_log_scan *scan, size_t n)
{
    size_t left = scan->window.len - scan->pos;
    scan->pos += n < left ? n : left;
}

/* Steps over 8 bytes that begin no record. */
static void skip_bad(struct zc_log_scan *scan, struct zc_segment *s, uint64_t at)
{
    size_t left = scan->window.len - scan->pos;
    size_t n = left < ZC_RECORD_ALIGN ? left : ZC_RECORD_ALIGN;
    bad_begin(scan, at);
    if (memcmp(scan->window.data + scan->pos, zeros, n) != 0 && at + n > s->dirty)
        s->dirty = at + n;
    scan->pos += n;
}

/* Steps over a block of zeros, as most of a fresh segment is, but for its last 8 bytes: what begins
 * in one has no length and is no record. False: there is none. */
static bool skip_zeros(struct zc_log_scan *scan, uint64_t at)
{
    const size_t n = sizeof(zeros);
    size_t left = scan->window.len - scan->pos;
    if (left < n || scan->limit - at < n || memcmp(scan->window.data + scan->pos, zeros, n) != 0)
        return false;
    bad_begin(scan, at);
    scan->pos += n - ZC_RECORD_ALIGN;
    return true;
}

static enum zc_log_scan_step scan_end(struct zc_log_scan *scan, struct zc_segment *s,
                                      struct zc_log_status *counts)
{
    if (scan->limit != UINT64_MAX && (s->head_ok || !scan->bad)) {
        /* The segment went on up to the limit, so what is missing was lost. */
        bad_begin(scan, scan->window_at + scan->pos);
        bad_count(scan, s, counts, scan->limit);
    }
    return ZC_SCAN_END;
}

/* The head at pos passed. True: its body too. */
static bool body_ok(struct zc_log_scan *scan, struct zc_segment *s, const struct zc_record *r,
                    uint64_t at)
{
    const uint8_t *record = scan->window.data + scan->pos;
    size_t left = scan->window.len - scan->pos;
    if (left >= ZC_RECORD_HEAD + r->len && zc_record_body_ok(r, record + ZC_RECORD_HEAD))
        return true;
    bad_begin(scan, at);
    scan->bad_count++;
    if (at + zc_record_size(r->len) > s->dirty)
        s->dirty = at + zc_record_size(r->len);
    skip(scan, zc_record_size(r->len));
    return false;
}

enum zc_log_scan_step zc_log_scan_next(struct zc_log_scan *scan, struct zc_segment *s,
                                       struct zc_log_status *counts, struct zc_record *ret_record,
                                       const uint8_t **ret_body, uint64_t *ret_offset)
{
    for (;;) {
        uint64_t at = scan->window_at + scan->pos;
        size_t left = scan->pos < scan->window.len ? scan->window.len - scan->pos : 0;
        if (at >= scan->limit)
            return scan_end(scan, s, counts);
        scan->need = ZC_RECORD_HEAD;
        if (left < ZC_RECORD_HEAD && !scan->eof)
            return ZC_SCAN_MORE;
        if (left == 0)
            return scan_end(scan, s, counts);
        if (skip_zeros(scan, at))
            continue;
        struct zc_record r;
        if (left < ZC_RECORD_HEAD || !s->head_ok ||
            zc_record_decode(scan->window.data + scan->pos, s->salt, at, &r) != 0 ||
            at + zc_record_size(r.len) > scan->limit) {
            skip_bad(scan, s, at);
            continue;
        }
        scan->need = zc_record_size(r.len);
        if (left < scan->need && !scan->eof)
            return ZC_SCAN_MORE;
        if (!body_ok(scan, s, &r, at))
            continue;
        bad_count(scan, s, counts, at);
        *ret_record = r;
        *ret_body = scan->window.data + scan->pos + ZC_RECORD_HEAD;
        *ret_offset = at;
        skip(scan, zc_record_size(r.len));
        s->end = at + zc_record_size(r.len);
        return ZC_SCAN_RECORD;
    }
}
