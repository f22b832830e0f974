/* drain: nothing new comes in, what is there goes on and out. */
#define _GNU_SOURCE
#include "base/check.h"
#include "mesh.h"

#define HAS(text, part) CHECK(strstr(text, part) != NULL)
#define LACKS(text, part) CHECK(strstr(text, part) == NULL)

static const char *drain(struct node *n)
{
    struct local *c = mesh_session(n, true);
    const char *got = mesh_call(c, "{\"op\":\"drain\",\"id\":\"d\"}");
    mesh_free(c);
    return got;
}

static const char *status(struct node *n)
{
    struct local *c = mesh_session(n, true);
    const char *got = mesh_call(c, "{\"op\":\"status\",\"id\":\"s\"}");
    mesh_free(c);
    return got;
}

TEST(what_is_new_is_refused)
{
    static const char *const refused[] = {
        "{\"op\":\"put\",\"id\":\"1\",\"name\":\"q\",\"text\":\"x\"}",
        "{\"op\":\"put\",\"id\":\"1\",\"name\":\"q\",\"text\":\"x\",\"if\":\"consumer\"}",
        "{\"op\":\"pub\",\"id\":\"1\",\"name\":\"t\",\"text\":\"x\"}",
        "{\"op\":\"req\",\"id\":\"1\",\"name\":\"q\",\"text\":\"x\"}",
        "{\"op\":\"bind\",\"id\":\"1\",\"name\":\"q\",\"topic\":\"t\"}",
        "{\"op\":\"move\",\"id\":\"1\",\"name\":\"q\",\"to\":\"r\"}",
    };
    mesh_start();
    struct node *hub = mesh_hub(1), *spoke = mesh_joined(2, hub);
    struct local *a = mesh_client(spoke, 7), *b = mesh_session(hub, false);
    HAS(mesh_call(a, "{\"op\":\"put\",\"name\":\"q\",\"text\":\"old\"}"), "\"op\":\"ok\"");
    HAS(status(hub), "\"draining\":false");
    HAS(drain(hub), "\"op\":\"ok\",\"id\":\"d\"");
    HAS(status(hub), "\"draining\":true");
    mesh_run(2);
    CHECK(mesh_has(hub, "drain"));
    for (size_t i = 0; i < ZC_ARRAY_LEN(refused); i++) {
        const char *got = mesh_call(i % 2 == 0 ? a : b, refused[i]);
        HAS(got, "\"code\":\"unavailable\"");
        HAS(got, "\"id\":\"1\"");
        HAS(got, "this hub is being drained");
    }
    struct zc_hub_stats st;
    zc_hub_stats(hub->hub, &st);
    CHECK_INT(st.queued, 1);
    CHECK_INT(st.mailboxes, 1);
    CHECK(st.draining);
    /* a second time changes nothing */
    HAS(drain(hub), "\"op\":\"ok\"");
    mesh_free(a);
    mesh_free(b);
    mesh_end();
}

/* Calls with a member of the frame `from` in it. */
static const char *with(struct local *l, const char *from, const char *member, const char *format)
{
    char head[32], value[128] = "", json[256];
    snprintf(head, sizeof(head), "\"%s\":\"", member);
    const char *at = strstr(from, head);
    CHECK(at != NULL && sscanf(at + strlen(head), "%127[^\"]", value) == 1);
    snprintf(json, sizeof(json), format, value);
    return mesh_call(l, json);
}

TEST(what_is_there_goes_on)
{
    static const char RESERVE[] = "{\"op\":\"reserve\",\"name\":\"q\",\"lease\":60}";
    mesh_start();
    struct node *hub = mesh_hub(1);
    struct local *a = mesh_session(hub, false), *w = mesh_session(hub, false);
    for (int i = 0; i < 5; i++)
        HAS(mesh_call(a, "{\"op\":\"put\",\"name\":\"q\",\"text\":\"x\"}"), "\"op\":\"ok\"");
    mesh_send(a, "{\"op\":\"req\",\"id\":\"r\",\"name\":\"s\",\"text\":\"y\"}");
    mesh_run_local(a);
    HAS(drain(hub), "\"op\":\"ok\"");
    const char *got = mesh_call(w, "{\"op\":\"ready\",\"name\":\"s\"}");
    HAS(got, "\"text\":\"y\"");
    HAS(with(w, got, "id", "{\"op\":\"rep\",\"id\":\"%s\",\"text\":\"z\"}"), "\"op\":\"ok\"");
    HAS(mesh_recv(a, 10), "\"text\":\"z\"");
    HAS(mesh_call(w, "{\"op\":\"take\",\"name\":\"q\"}"), "\"text\":\"x\"");
    char held[512];
    snprintf(held, sizeof(held), "%s", mesh_call(w, RESERVE));
    HAS(with(w, held, "delivery", "{\"op\":\"touch\",\"delivery\":\"%s\",\"lease\":60}"), "ok");
    HAS(with(w, held, "delivery", "{\"op\":\"nack\",\"delivery\":\"%s\"}"), "\"op\":\"ok\"");
    got = mesh_call(w, RESERVE);
    HAS(got, "\"attempt\":2");
    HAS(with(w, got, "delivery", "{\"op\":\"ack\",\"delivery\":\"%s\"}"), "\"op\":\"ok\"");
    HAS(mesh_call(w, "{\"op\":\"peek\",\"id\":\"p\",\"name\":\"q\"}"), "\"text\":\"x\"");
    HAS(mesh_call(w, "{\"op\":\"purge\",\"id\":\"p\",\"name\":\"q\"}"), "\"op\":\"ok\"");
    HAS(mesh_call(w, "{\"op\":\"sub\",\"id\":\"s\",\"name\":\"t\"}"), "\"op\":\"ok\"");
    struct zc_hub_stats st;
    zc_hub_stats(hub->hub, &st);
    CHECK_INT(st.queued + st.leased, 0);
    mesh_free(a);
    mesh_free(w);
    mesh_end();
}

TEST(a_spoke_takes_no_new_clients)
{
    mesh_start();
    struct node *hub = mesh_hub(1), *spoke = mesh_joined(2, hub);
    struct local *a = mesh_client(spoke, 7);
    HAS(mesh_call(a, "{\"op\":\"ping\",\"id\":\"1\"}"), "pong");
    HAS(drain(spoke), "\"op\":\"ok\"");
    HAS(status(spoke), "\"draining\":true");
    struct local *b = mesh_client(spoke, 7), *f = mesh_client(spoke, 8081);
    HAS(mesh_recv(b, 10), "this spoke is being drained");
    CHECK(MESH_UNTIL(b, b->closed, 10) >= 0);
    LACKS(status(hub), "\"draining\":true");
    CHECK(MESH_UNTIL(f, f->closed, 10) >= 0);
    CHECK(f->reset);
    HAS(mesh_call(a, "{\"op\":\"put\",\"name\":\"q\",\"text\":\"x\"}"), "\"op\":\"ok\"");
    mesh_free(a);
    mesh_free(b);
    mesh_free(f);
    mesh_end();
}

TEST(a_client_that_is_held_when_it_begins)
{
    mesh_start();
    struct node *hub = mesh_hub(1), *spoke = mesh_spoke(2);
    struct local *a = mesh_client(spoke, 7);
    mesh_send(a, "{\"op\":\"ping\",\"id\":\"1\"}");
    mesh_run_local(a);
    HAS(drain(spoke), "\"op\":\"ok\"");
    mesh_join(spoke, hub, &mesh_psk);
    HAS(mesh_recv(a, 6000), "pong");
    mesh_free(a);
    mesh_end();
}
