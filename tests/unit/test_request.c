/* Requests that wait: found by message id and mailbox, gone with reply or requester. */
#include "test.h"
#include "zmqc/request.h"
#include "zmqc/session.h"

static struct zc_requests requests = {.key = {5}};
static struct zc_heap timers;

static struct zc_request *find(const char *id, uint64_t mailbox)
{
    return zc_request_find(&requests, zc_slice_str(id), mailbox);
}

TEST(one_id_in_two_mailboxes)
{
    struct zc_session *s = zc_session_new("i", "n");
    struct zc_request *a = zc_request_new(&requests, s, zc_slice_str("s1:x"), 3, 11);
    struct zc_request *b = zc_request_new(&requests, s, zc_slice_str("s1:x"), 3, 22);
    CHECK(find("s1:x", 11) == a && find("s1:x", 22) == b);
    CHECK(find("s1:x", 33) == NULL && find("s1:y", 11) == NULL && find("s1:", 0) == NULL);
    struct zc_request *any = find("s1:x", 0);
    CHECK(any == a || any == b);
    CHECK_INT(s->requests_count, 2);
    CHECK_INT(zc_heap_set(&timers, &a->timer, (struct zc_mono){5}), 0);
    zc_request_free(&requests, &timers, a);
    CHECK(zc_heap_min(&timers) == NULL);
    CHECK(find("s1:x", 11) == NULL && find("s1:x", 0) == b);
    CHECK_INT(s->requests_count, 1);
    zc_request_free(&requests, &timers, b);
    CHECK_INT(requests.by_id.len, 0);
    CHECK(zc_list_empty(&s->requests));
    zc_session_free(s);
    zc_heap_done(&timers);
}

TEST(many_come_and_go)
{
    enum { N = 2000 };
    static struct zc_request *all[N];
    struct zc_session *s = zc_session_new("i", "n");
    char id[16];
    for (int i = 0; i < N; i++) {
        snprintf(id, sizeof(id), "s1:%d", i);
        all[i] = zc_request_new(&requests, s, zc_slice_str(id), 3, 7);
    }
    for (int i = 0; i < N; i += 2)
        zc_request_free(&requests, &timers, all[i]);
    for (int i = 0; i < N; i++) {
        snprintf(id, sizeof(id), "s1:%d", i);
        CHECK(find(id, 7) == (i % 2 != 0 ? all[i] : NULL));
    }
    for (int i = 1; i < N; i += 2)
        zc_request_free(&requests, &timers, all[i]);
    CHECK_INT(s->requests_count, 0);
    zc_session_free(s);
    zc_heap_done(&timers);
}
