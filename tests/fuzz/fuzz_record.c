/*
 * Segment files of any content through opening: it ends, gives out only records that pass, can be
 * written to afterwards, and finds the same again. The first byte of an input chooses: bit 0: the
 * rest is made into records first, with right checksums but for some; bit 1: two segments, the
 * rest cut in half; bit 2 as well: the first half is an index, with right checksums, of a segment
 * that the second seals.
 */
#include <stdlib.h>
#include <string.h>

#include "../unit/store_disk.h"
#include "base/check.h"
#include "base/crc32c.h"
#include "base/rng.h"
#include "store/index.h"
#include "store/log.h"
#include "store/record.h"
#include "store/segment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STEPS_MAX 10000000

/* What opening gave out. */
struct found {
    uint64_t puts;
    bool indexed; /* records may be claimed that are not there */
};

#define SEALED 65000

/* Turns arbitrary bytes from 128 on into records: lengths cut to fit, most checksums put right. */
static void forge(uint8_t *file, size_t size, const struct zc_segment *s)
{
    for (size_t at = ZC_SEGMENT_HEAD; at + ZC_RECORD_HEAD <= size;) {
        uint8_t *r = file + at;
        size_t room = size - at;
        size_t length = ZC_RECORD_HEAD + (zc_record_get32(r + 8) & 0xfff);
        uint8_t choice = r[13];
        length = length > room ? room : length;
        zc_record_set32(r + 8, (uint32_t)length);
        r[12] = (uint8_t)(1 + r[12] % 6);
        r[13] = r[14] = r[15] = 0;
        if (choice % 8 != 1) {
            struct zc_slice body = zc_slice(r + ZC_RECORD_HEAD, length - ZC_RECORD_HEAD);
            zc_record_set32(r + 4, zc_crc32c(0, body.data, body.len));
        }
        if (choice % 8 != 2)
            zc_record_stamp(r, s->salt, at);
        at += zc_record_size(length - ZC_RECORD_HEAD);
    }
}

static void add_file(struct fd *disk, uint32_t number, const uint8_t *data, size_t size, bool made)
{
    struct zc_segment s = {.number = number, .salt = UINT64_C(0x5a17) * number, .seq = 3};
    struct fd_file *f = fd_add(disk, number, made ? ZC_SEGMENT_HEAD + size : size);
    f->durable = true;
    if (!made) {
        fd_poke(f, 0, data, size);
        return;
    }
    uint8_t *copy = calloc(ZC_SEGMENT_HEAD + size, 1);
    ZC_ASSERT(copy != NULL);
    zc_segment_head_encode(copy, &s);
    memcpy(copy + ZC_SEGMENT_HEAD, data, size);
    forge(copy, ZC_SEGMENT_HEAD + size, &s);
    fd_poke(f, 0, copy, ZC_SEGMENT_HEAD + size);
    free(copy);
}

/* Segment 1, empty, which segment 2 seals, and an index of it out of any bytes. */
static void add_indexed(struct fd *disk, const uint8_t *data, size_t size)
{
    struct zc_segment one = {.number = 1, .salt = 11, .seq = 3, .end = SEALED, .size = 65536};
    struct zc_segment two = {.number = 2, .salt = 22, .seq = 3};
    struct zc_index index = {.seq_max = 9};
    struct zc_buf b = {0};
    uint8_t head[ZC_SEGMENT_START];
    zc_segment_head_encode(head, &one);
    struct fd_file *f = fd_add(disk, 1, one.size);
    fd_poke(f, 0, head, ZC_SEGMENT_HEAD);
    f->durable = true;
    zc_segment_head_encode(head, &two);
    zc_segment_seals_encode(head + ZC_SEGMENT_HEAD, &two, 3, 1, SEALED);
    f = fd_add(disk, 2, 65536);
    fd_poke(f, 0, head, sizeof(head));
    f->durable = true;
    ZC_ASSERT(zc_index_begin(&b) == 0 && zc_buf_append(&b, data, size) == 0);
    index.count = size >= 4 ? zc_record_get32(data) % 64 : 0;
    zc_index_end(&b, &index, &one);
    f = fd_add(disk, 1 | FD_INDEX, b.len);
    fd_poke(f, 0, b.data, b.len);
    f->durable = true;
    zc_buf_done(&b);
}

/* A record that was given out is one, byte for byte, in its file. */
static void judge(struct fd *disk, const struct zc_log_event *ev, struct found *found)
{
    ZC_ASSERT(ev->type >= ZC_RECORD_PUT && ev->type <= ZC_RECORD_SEEN);
    ZC_ASSERT(zc_record_shape_ok(ev->type, ev->body_len) && ev->body.len <= ev->body_len);
    if (zc_record_kept(ev->type) && !found->indexed) {
        struct fd_file *f = fd_find(disk, (uint32_t)(ev->place >> 32));
        uint64_t at = (uint32_t)ev->place;
        struct zc_segment s = {.number = (uint32_t)(ev->place >> 32)};
        struct zc_record r;
        ZC_ASSERT(f != NULL && at % 8 == 0 && at + ZC_RECORD_HEAD + ev->body.len <= f->size);
        ZC_ASSERT(zc_segment_head_decode(f->cache, &s) == 0);
        ZC_ASSERT(zc_record_decode(f->cache + at, s.salt, at, &r) == 0);
        ZC_ASSERT(r.seq == ev->seq && r.type == ev->type && r.len == ev->body.len);
        ZC_ASSERT(zc_record_body_ok(&r, f->cache + at + ZC_RECORD_HEAD));
        ZC_ASSERT(memcmp(f->cache + at + ZC_RECORD_HEAD, ev->body.data, r.len) == 0);
    }
    /* What is kept only: a segment without any is removed, and its other records with it. */
    found->puts += zc_record_kept(ev->type);
}

/* Opens the log, puts one message, closes it. False: the log says that it cannot be used. */
static bool life(struct fd *disk, struct found *found)
{
    uint32_t numbers[FD_FILES];
    uint8_t seed[32] = {1};
    struct zc_rng rng;
    struct zc_now now = {.mono = {1000}};
    zc_rng_init(&rng, seed);
    uint32_t count = fd_list(disk, numbers);
    struct zc_log_config config = {
        .segment_bytes = 65536, .segments = numbers, .segments_count = count};
    struct zc_log *log = zc_log_new(&config, &rng);
    struct zc_log_event ev;
    struct zc_disk_op op;
    struct zc_log_status st;
    bool unusable = false, synced = false;
    ZC_ASSERT(log != NULL);
    for (int step = 0;; step++) {
        ZC_ASSERT(step < STEPS_MAX);
        while (zc_log_event(log, &ev)) {
            unusable = unusable || ev.kind == ZC_LOG_UNUSABLE;
            synced = synced || ev.kind == ZC_LOG_SYNCED;
            if (ev.kind == ZC_LOG_RECORD)
                judge(disk, &ev, found);
            if (ev.kind == ZC_LOG_READY)
                ZC_ASSERT(zc_log_append(log, ZC_RECORD_PUT, 77, zc_slice("seventy-seven", 13), true,
                                        NULL) == 1);
        }
        if (unusable || !zc_log_op(log, now, &op))
            break;
        struct zc_disk_completion done = {.id = op.id, .result = fd_do(disk, &op, false)};
        zc_log_input(log, now, &done);
    }
    if (!unusable) {
        zc_log_status(log, &st);
        ZC_ASSERT(synced && st.state == ZC_LOG_OK);
    }
    zc_log_free(log);
    return !unusable;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fd disk;
    if (size < 1)
        return 0;
    uint8_t choice = data[0];
    data++;
    size--;
    memset(&disk, 0, sizeof(disk));
    if ((choice & 6) == 6) {
        add_indexed(&disk, data, size);
    } else if (choice & 2) {
        add_file(&disk, 1, data, size / 2, choice & 1);
        add_file(&disk, 2, data + size / 2, size - size / 2, choice & 1);
    } else {
        add_file(&disk, 1, data, size, choice & 1);
    }
    struct found first = {.indexed = (choice & 6) == 6}, second = first;
    if (life(&disk, &first) && life(&disk, &second))
        ZC_ASSERT(second.puts == first.puts + 1);
    fd_done(&disk);
    return 0;
}
