/* Lines for the host's log and trace: made here, escaped, bounded in number. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "zmqc/broker.h"

/* Room for one more line of up to cap characters, or NULL. */
static struct zc_line *line_new(struct zc_broker *b, int level, bool trace, size_t cap)
{
    struct zc_line *line = b->lines_count < ZC_BROKER_LOG_MAX ? malloc(sizeof(*line) + cap) : NULL;
    if (line == NULL) {
        b->lines_dropped++;
        return NULL;
    }
    line->level = (uint8_t)level;
    line->trace = trace;
    zc_list_push(&b->lines, &line->link);
    b->lines_count++;
    return line;
}

static void put(struct zc_buf *j, const char *text)
{
    if (zc_json_put_raw(j, text) != 0)
        j->len = 0; /* a shorter line is better than none */
}

static void put_int(struct zc_buf *j, uint64_t v)
{
    if (zc_json_put_int(j, (int64_t)v) != 0)
        j->len = 0;
}

static void put_escaped(struct zc_buf *j, struct zc_slice s)
{
    char text[4 * ZC_MSG_STRING_MAX + 1];
    zc_text_escape(text, sizeof(text), s);
    put(j, text);
}

static void finish_line(struct zc_broker *b, struct zc_buf *j, int level, bool trace)
{
    struct zc_line *line = line_new(b, level, trace, j->len + 1);
    if (line != NULL) {
        memcpy(line->text, j->data, j->len);
        line->text[j->len] = '\0';
    }
    zc_buf_done(j);
}

void zc_broker_log(struct zc_broker *b, int level, const struct zc_session *s, const char *what)
{
    struct zc_buf j = {0};
    if (s != NULL) {
        put(&j, "session s");
        put_int(&j, s->serial);
        put(&j, " (");
        put_escaped(&j, zc_slice_str(s->identity));
        put(&j, "): ");
    }
    put(&j, what);
    finish_line(b, &j, level, false);
}

void zc_broker_trace(struct zc_broker *b, const struct zc_session *s, bool out,
                     const struct zc_msg *m)
{
    struct zc_buf j = {0};
    put(&j, "zmqcat s");
    put_int(&j, s->serial);
    put(&j, out ? " out op=" : " in op=");
    put_escaped(&j, m->op);
    put(&j, " id=");
    put_escaped(&j, m->id);
    put(&j, " name=");
    put_escaped(&j, m->name);
    put(&j, " bytes=");
    put_int(&j, zc_msg_payload(m).len);
    finish_line(b, &j, 6, true);
}

const struct zc_line *zc_broker_line(struct zc_broker *b)
{
    free(b->line_told);
    b->line_told = NULL;
    struct zc_list *l = zc_list_first(&b->lines);
    if (l == NULL)
        return NULL;
    zc_list_remove(l);
    b->lines_count--;
    b->line_told = ZC_CONTAINER(l, struct zc_line, link);
    return b->line_told;
}
