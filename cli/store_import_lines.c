/* Lines of an export, or the mailbox file of the Go zmqcat, on standard input. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "host/clock.h"
#include "store_import.h"

#define READ_SIZE ((size_t)256 << 10)
#define SEQ_KEPT_MAX (UINT64_C(1) << 62)
#define STATE_MAX ((size_t)4 << 30) /* of a mailbox file, which is read as a whole */

static int fail(struct zc_store_import *im, int err, const char *what)
{
    return im->line > 0 ? zc_why_set(im->why, err, "line %" PRIu64 ": %s", im->line, what)
                        : zc_why_set(im->why, err, "%s", what);
}

/* Reads more; im->eof at the end. */
static int more(struct zc_store_import *im)
{
    if (im->used > 0) {
        zc_buf_consume(&im->in, im->used);
        im->used = 0;
    }
    if (zc_buf_reserve(&im->in, READ_SIZE) != 0)
        return fail(im, ZC_ENOMEM, "out of memory");
    ssize_t n;
    do
        n = read(STDIN_FILENO, im->in.data + im->in.len, im->in.cap - im->in.len);
    while (n < 0 && errno == EINTR);
    if (n < 0) {
        zc_why_errno(im->why, "standard input");
        return ZC_EIO;
    }
    im->in.len += (size_t)n;
    im->eof = n == 0;
    return 0;
}

/* The next line without its newline. 1, 0 at the end, or negative. */
static int next_line(struct zc_store_import *im, uint8_t **ret_line, size_t *ret_len)
{
    size_t searched = 0;
    im->line++;
    for (;;) {
        size_t len = im->in.len - im->used;
        uint8_t *p = im->in.data + im->used, *newline = NULL;
        if (len > searched)
            newline = memchr(p + searched, '\n', len - searched);
        if (newline != NULL || (im->eof && len > 0)) {
            *ret_line = p;
            *ret_len = newline != NULL ? (size_t)(newline - p) : len;
            im->used += *ret_len + (newline != NULL);
            im->bytes += *ret_len + (newline != NULL);
            return 1;
        }
        if (im->eof)
            return 0;
        if (len > ZC_DUMP_LINE_MAX)
            return fail(im, ZC_EBADMSG, "it is longer than 64 MiB");
        searched = len;
        int err = more(im);
        if (err != 0)
            return err;
    }
}

/* The sequence number of a line: its own while they rise, and leave the hub enough of them. */
static uint64_t seq_of(const struct zc_store_import *im)
{
    uint64_t seq = im->parsed.seq;
    return seq > im->made.seq && seq <= SEQ_KEPT_MAX ? seq : im->made.seq + 1;
}

static int take_message(struct zc_store_import *im)
{
    struct zc_dump_line *l = &im->parsed;
    if (l->item.at_ms == 0)
        l->item.at_ms = zc_clock_now().wall.ms;
    struct zc_block *body = zc_item_encode(&l->item, l->headers, l->item.headers_count);
    if (body == NULL)
        return fail(im, ZC_ENOMEM, "out of memory");
    int err = zc_rebuild_put(&im->made, seq_of(im), zc_block_slice(body), l->attempt > 0,
                             l->attempt, l->item.due_ms);
    zc_block_unref(body);
    im->messages += err == 0;
    return err;
}

static int take_record(struct zc_store_import *im, enum zc_record_type type)
{
    uint8_t body[ZC_DUMP_BODY_MAX];
    int err = zc_rebuild_add(&im->made, type, seq_of(im), zc_dump_body(&im->parsed, body));
    im->bindings += err == 0 && type == ZC_RECORD_BIND;
    im->remembered += err == 0 && type == ZC_RECORD_SEEN;
    return err;
}

static int take_line(struct zc_store_import *im, uint8_t *data, size_t len)
{
    const char *why = NULL;
    if (im->ended)
        return fail(im, ZC_EBADMSG, "something stands behind the end");
    int err = zc_dump_parse(data, len, &im->parsed, &why);
    if (err != 0)
        return fail(im, err, why);
    switch (im->parsed.kind) {
    case ZC_DUMP_HEAD:
        if (im->line > 1)
            return fail(im, ZC_EBADMSG, "a second export begins here: import one at a time");
        im->headed = true;
        return 0;
    case ZC_DUMP_END:
        im->ended = true;
        return im->parsed.count == im->lines
                   ? 0
                   : fail(im, ZC_EBADMSG, "lines are missing before the end");
    case ZC_DUMP_MESSAGE:
        err = take_message(im);
        break;
    case ZC_DUMP_BIND:

        err = take_record(im, ZC_RECORD_BIND);
        break;
    case ZC_DUMP_SEEN:
        err = take_record(im, ZC_RECORD_SEEN);
        break;
    }
    im->lines++;
    if (err != 0 && im->why[0] == '\0')
        return fail(im, err, im->made.why);
    return err;
}

/* The input is a mailbox file of the Go program, by how it begins. */
static bool is_state(const struct zc_store_import *im)
{
    static const char *const firsts[] = {"\"boxes\"", "\"inflight\""};
    char text[16] = "";
    size_t n = 0;
    bool brace = false;
    for (size_t i = im->used; i < im->in.len && n < sizeof text - 1; i++) {
        uint8_t c = im->in.data[i];
        if (c == ' ' || c == '\t' || c == '\r' || c == '\n')
            continue;
        if (!brace && c != '{')
            return false;
        if (brace)
            text[n++] = (char)c;
        brace = true;
    }
    for (size_t i = 0; i < ZC_ARRAY_LEN(firsts); i++)
        if (strncmp(text, firsts[i], strlen(firsts[i])) == 0)
            return true;
    return false;
}

static int take_state(struct zc_store_import *im)
{
    int64_t count;
    int err = 0;
    while (err == 0 && !im->eof) {
        if (im->in.len > STATE_MAX)
            return fail(im, ZC_EBADMSG, "standard input is larger than 4 GiB");
        err = more(im);
    }
    im->bytes = im->in.len;
    if (err == 0)
        err = zc_import_messages(&im->made, im->in.data, im->in.len, &count, im->why);
    if (err == 0)
        im->messages = (uint64_t)count;
    return err;
}

int zc_store_import_lines(struct zc_store_import *im)
{
    struct zc_store *s = im->s;
    uint8_t *line = NULL;
    size_t len = 0;
    int r = 0;
    while (r == 0 && !im->eof && im->in.len < 64)
        r = more(im);
    if (r != 0)
        return r;
    if (is_state(im))
        return take_state(im);
    zc_progress_init(&s->progress, s->title, s->path, "lines", 0);
    while ((r = next_line(im, &line, &len)) == 1) {
        if (len > 0 && (r = take_line(im, line, len)) != 0)
            return r;
        zc_progress_show(&s->progress, im->bytes, im->lines);
    }
    if (r == 0 && im->headed && !im->ended) {
        im->line = 0;
        return fail(im, ZC_EBADMSG,
                    "standard input is cut short: the line that ends an export "
                    "is missing");
    }
    if (r == 0 && im->lines == 0 && !im->headed) {
        im->line = 0;
        return fail(im, ZC_EBADMSG,
                    "standard input is empty: the export before it may have failed");
    }
    return r;
}
