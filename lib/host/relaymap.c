/* The map's way from file or web server to the tunnel; see relaymap.h. */
#include "host/relaymap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>

#include "base/check.h"
#include "base/text.h"
#include "host/fetch.h"
#include "host/host.h"
#include "host/pump.h"
#include "host/secretfile.h"

#define RETRY_FIRST_MS 1000
#define RETRY_MAX_MS 60000

struct zc_relaymap {
    struct zc_host *h;
    zc_relaymap_done_fn done;
    void *arg;
    uv_work_t work;
    uv_timer_t retry;
    uint64_t retry_ms;
    bool working;
    bool over;   /* nobody wants it any more */
    bool closed; /* its timer */
    char *source, *store;
    bool server;
    int64_t region;
    struct zc_relaymap_result result;
};

static bool is_url(const char *source)
{
    return strncmp(source, "http://", 7) == 0 || strncmp(source, "https://", 8) == 0;
}

/* "DERP map SOURCE: text". */
static void explain(struct zc_relaymap *m, const char *text)
{
    char escaped[400];
    zc_text_escape(escaped, sizeof(escaped), zc_slice_str(m->source));
    snprintf(m->result.why, sizeof(m->result.why), "DERP map %s: %.340s", escaped, text);
}

/* ---- on the other thread ---- */

/* Takes the relays of the region that is wanted. */
static int pick(struct zc_relaymap *m, const struct zc_derpmap *map)
{
    const struct zc_derpmap_region *region = NULL;
    char why[120];
    if (m->region != 0)
        region = zc_derpmap_find(map, m->region);
    for (uint32_t i = 0; m->region == 0 && i < 2 * map->regions_count && region == NULL; i++) {
        const struct zc_derpmap_region *r = &map->regions[i % map->regions_count];
        bool shunned = i < map->regions_count && (r->avoid || r->no_home);
        if (!shunned && zc_derpmap_relay(map, r) != NULL)
            region = r;
    }
    m->result.count = 0;
    for (uint32_t i = 0; region != NULL && i < region->nodes_count; i++) {
        const struct zc_derpmap_node *n = &map->nodes[region->nodes_first + i];
        if (!n->stun_only && m->result.count < ZC_TUNNEL_RELAYS_MAX)
            m->result.relays[m->result.count++] = *n;
    }
    if (m->result.count > 0) {
        m->result.region_id = region->id;
        return 0;
    }
    snprintf(why, sizeof(why), "it has no region %lld with a relay", (long long)m->region);
    explain(m, why);
    return ZC_ENOENT;
}

/* Parses and picks. */
static int use(struct zc_relaymap *m, struct zc_slice json)
{
    struct zc_derpmap map;
    char why[ZC_DERPMAP_WHY_MAX];
    int err = zc_derpmap_parse(json, &map, why);
    if (err != 0) {
        explain(m, why);
        return err;
    }
    err = pick(m, &map);
    zc_derpmap_done(&map);
    return err;
}

static void use_file(struct zc_relaymap *m)
{
    struct zc_buf text = {0};
    char why[ZC_SECRETFILE_WHY_MAX];
    m->result.err = zc_secretfile_read(m->source, ZC_DERPMAP_BYTES_MAX, &text, why);
    if (m->result.err != 0)
        explain(m, why);
    else
        m->result.err = use(m, zc_slice(text.data, text.len));
    zc_secretfile_done(&text);
}

/* The copy on disk. */
struct stored {
    bool there;
    struct zc_buf text;
    int64_t age_s;
    char etag[ZC_FETCH_ETAG_MAX];
};

static void etag_path(const struct zc_relaymap *m, char *ret_path, size_t cap)
{
    snprintf(ret_path, cap, "%s.etag", m->store);
}

/* Its note must name our URL. */
static bool read_note(struct zc_relaymap *m, struct stored *s)
{
    char path[4096], why[ZC_SECRETFILE_WHY_MAX];
    struct zc_buf note = {0};
    size_t len = strlen(m->source);
    etag_path(m, path, sizeof(path));
    if (zc_secretfile_read(path, 8192, &note, why) != 0)
        return false;
    bool ours = note.len > len && memcmp(note.data, m->source, len) == 0 && note.data[len] == '\n';
    size_t etag_len = ours ? note.len - len - 1 : 0;
    if (ours && etag_len > 0 && note.data[note.len - 1] == '\n')
        etag_len--;
    if (etag_len < sizeof(s->etag)) {
        if (etag_len > 0)
            memcpy(s->etag, note.data + len + 1, etag_len);
        s->etag[etag_len] = '\0';
    }
    zc_secretfile_done(&note);
    return ours;
}

static void read_stored(struct zc_relaymap *m, struct stored *s)
{
    char why[ZC_SECRETFILE_WHY_MAX];
    struct stat st;
    struct zc_derpmap map;
    if (m->store == NULL || stat(m->store, &st) < 0 || !read_note(m, s) ||
        zc_secretfile_read(m->store, ZC_DERPMAP_BYTES_MAX, &s->text, why) != 0)
        return;
    char bad[ZC_DERPMAP_WHY_MAX];
    s->there = zc_derpmap_parse(zc_slice(s->text.data, s->text.len), &map, bad) == 0;
    if (s->there)
        zc_derpmap_done(&map);
    s->age_s = (int64_t)time(NULL) - (int64_t)st.st_mtime;
}

/* Keeps the copy. That it cannot be kept is worth a warning, not a failure. */
static void store(struct zc_relaymap *m, const struct zc_fetch_result *got)
{
    char path[4096], note[4096], why[ZC_SECRETFILE_WHY_MAX], text[ZC_SECRETFILE_WHY_MAX + 64];
    if (m->store == NULL)
        return;
    etag_path(m, path, sizeof(path));
    int n = snprintf(note, sizeof(note), "%s\n%s\n", m->source, got->etag);
    if (n < 0 || (size_t)n >= sizeof(note))
        return;
    int err = zc_secretfile_write(m->store, zc_slice(got->body.data, got->body.len), why);
    if (err == 0)
        err = zc_secretfile_write(path, zc_slice(note, (size_t)n), why);
    if (err != 0) {
        snprintf(text, sizeof(text), "the copy %s", why);
        explain(m, text);
    }
}

static void use_stored(struct zc_relaymap *m, const struct stored *s)
{
    m->result.err = use(m, zc_slice(s->text.data, s->text.len));
}

/* What was fetched, or what is stored instead. why: why nothing came. */
static void settle(struct zc_relaymap *m, const struct stored *s, const struct zc_fetch_result *got,
                   const char *why)
{
    char text[ZC_FETCH_WHY_MAX + 64];
    struct zc_derpmap map;
    char bad[ZC_DERPMAP_WHY_MAX];
    bool good = false;
    if (got->status == 200) {
        good = zc_derpmap_parse(zc_slice(got->body.data, got->body.len), &map, bad) == 0;
        if (good)
            zc_derpmap_done(&map);
        else
            why = bad;
    }
    switch (zc_derpmap_result(got->status, good, s->there)) {
    case ZC_DERPMAP_STORE:
        m->result.err = use(m, zc_slice(got->body.data, got->body.len));
        store(m, got);
        break;
    case ZC_DERPMAP_UNCHANGED:
        utimes(m->store, NULL);
        use_stored(m, s);
        break;
    case ZC_DERPMAP_FALL_BACK:
        use_stored(m, s);
        if (m->result.err != 0)
            break;
        snprintf(text, sizeof(text), "%s: using the copy of %lld s ago", why, (long long)s->age_s);
        explain(m, text);
        break;
    case ZC_DERPMAP_FAIL:
        explain(m, why);
        m->result.err = ZC_ENOENT;
        break;
    }
}

static void use_url(struct zc_relaymap *m)
{
    struct stored s = {0};
    struct zc_fetch_result got = {0};
    char why[ZC_FETCH_WHY_MAX] = "";
    read_stored(m, &s);
    enum zc_derpmap_plan plan = zc_derpmap_plan(s.there, s.age_s);
    if (plan == ZC_DERPMAP_USE) {
        use_stored(m, &s);
    } else {
        struct zc_fetch request = {
            .url = m->source,
            .etag = plan == ZC_DERPMAP_REVALIDATE && s.etag[0] != '\0' ? s.etag : NULL,
            .mode = m->server ? "server" : "client",
            .bytes_max = ZC_DERPMAP_BYTES_MAX,
            .timeout_ms = ZC_DERPMAP_FETCH_MS,
        };
        if (zc_fetch_get(&request, &got, why) == 0 && got.status != 200 && got.status != 304)
            snprintf(why, sizeof(why), "the server answers with status %d", got.status);
        settle(m, &s, &got, why);
    }
    zc_fetch_done(&got);
    zc_buf_done(&s.text);
}

static void on_work(uv_work_t *work)
{
    struct zc_relaymap *m = ZC_CONTAINER(work, struct zc_relaymap, work);
    m->result.why[0] = '\0';
    if (is_url(m->source))
        use_url(m);
    else
        use_file(m);
}

/* ---- on the loop ---- */

static void release(struct zc_relaymap *m)
{
    free(m->source);
    free(m->store);
    free(m);
}

static void on_closed(uv_handle_t *handle)
{
    struct zc_relaymap *m = ZC_CONTAINER(handle, struct zc_relaymap, retry);
    m->closed = true;
    if (!m->working)
        release(m);
}

static void on_worked(uv_work_t *work, int status);

static void begin(struct zc_relaymap *m)
{
    m->working = true;
    m->h->blocking++;
    uv_queue_work(&m->h->loop, &m->work, on_work, on_worked);
}

static void on_retry(uv_timer_t *timer)
{
    begin(ZC_CONTAINER(timer, struct zc_relaymap, retry));
}

static void on_worked(uv_work_t *work, int status)
{
    struct zc_relaymap *m = ZC_CONTAINER(work, struct zc_relaymap, work);
    m->h->blocking--;
    m->working = false;
    (void)status; /* only one that is over was cancelled */
    if (m->over) {
        if (m->closed)
            release(m);
        return;
    }
    if (m->result.err != 0) {
        uv_timer_start(&m->retry, on_retry, m->retry_ms, 0);
        m->retry_ms = m->retry_ms * 2 > RETRY_MAX_MS ? RETRY_MAX_MS : m->retry_ms * 2;
    }
    m->h->active = true;
    m->done(m->arg, &m->result);
    zc_pump_run(m->h);
}

void zc_relaymap_hurry(struct zc_relaymap *m)
{
    if (m == NULL || m->over || !uv_is_active((uv_handle_t *)&m->retry))
        return;
    uv_timer_stop(&m->retry);
    m->retry_ms = RETRY_FIRST_MS;
    begin(m);
}

void zc_relaymap_free(struct zc_relaymap *m)
{
    if (m == NULL || m->over)
        return;
    m->over = true;
    if (m->h->map == m)
        m->h->map = NULL;
    if (m->working)
        uv_cancel((uv_req_t *)&m->work);
    uv_close((uv_handle_t *)&m->retry, on_closed);
}

int zc_relaymap_start(struct zc_host *h, const struct zc_relaymap_config *config,
                      zc_relaymap_done_fn done, void *arg)
{
    struct zc_relaymap *m = calloc(1, sizeof(*m));
    if (m == NULL)
        return ZC_ENOMEM;
    m->h = h;
    m->done = done;
    m->arg = arg;
    m->retry_ms = RETRY_FIRST_MS;
    m->server = config->server;
    m->region = config->region;
    m->source = strdup(config->source);
    m->store = config->store != NULL ? strdup(config->store) : NULL;
    if (m->source == NULL || (config->store != NULL && m->store == NULL)) {
        release(m);
        return ZC_ENOMEM;
    }
    zc_relaymap_free(h->map);
    h->map = m;
    uv_timer_init(&h->loop, &m->retry);
    begin(m);
    return 0;
}
