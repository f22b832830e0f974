/*
 * Words for the shells' completion: verbs and options from our tables, names of mailboxes from the
 * running hub. A timer ends the process, so that no prompt ever hangs.
 */
#include "complete.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/text.h"
#include "open.h"
#include "verbs.h"

#define HUB_MS 500

/* The command line as far as it is known. */
struct line {
    const struct zc_verb *verb;
    const char *current; /* the unfinished word */
    const char *listen;  /* value of --listen, or NULL */
    struct zc_args_row option;
    bool wants_value;  /* of option */
    bool options_over; /* `--` was there */
    int positional;    /* arguments before the current one */
};

static bool starts(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

static void offer(const char *current, const char *word, const char *help)
{
    if (starts(word, current))
        printf("%s\t%.*s\n", word, (int)strcspn(help, ":."), help);
}

static const struct zc_verb *find_verb(const char *name)
{
    for (const struct zc_verb *v = zc_verbs; v->name != NULL; v++)
        if (strcmp(v->name, name) == 0)
            return v;
    return NULL;
}

/* The option that a word is: --name, --name=value or -l. */
static bool find_option(const struct zc_verb *v, const char *word, struct zc_args_row *ret_row)
{
    size_t len = strcspn(word, "=");
    for (size_t i = 0; zc_args_row(i, ret_row); i++) {
        if ((v->options & ret_row->bit) == 0)
            continue;
        if (starts(word, "--") && strlen(ret_row->name) == len - 2 &&
            strncmp(word + 2, ret_row->name, len - 2) == 0)
            return true;
        if (word[0] == '-' && word[1] != '\0' && word[1] == ret_row->letter && word[2] == '\0')
            return true;
    }
    return false;
}

/* Walks over the words before the current one. */
static void read_line(struct line *l, char **words, int count)
{
    for (int i = 1; i < count - 1; i++) {
        const char *word = words[i], *value = strchr(word, '=');
        struct zc_args_row row;
        if (l->options_over || word[0] != '-' || word[1] == '\0') {
            l->positional++;
            continue;
        }
        if (strcmp(word, "--") == 0) {
            l->options_over = true;
            continue;
        }
        if (!find_option(l->verb, word, &row) || row.value == NULL)
            continue;
        if (value == NULL && i + 1 == count - 1) {
            l->option = row;
            l->wants_value = true;
        }
        if (value == NULL)
            i++;
        if (row.bit == ZC_ARGS_LISTEN)
            l->listen = value != NULL ? value + 1 : words[i];
    }
}

static void on_alarm(int sig)
{
    (void)sig;
    _exit(0);
}

/* What would be escaped cannot be typed as it is. Others choose these names: none is to be taken
 * for an option, or by the script for a word of ours. */
static bool offers_name(const struct line *l, struct zc_slice name)
{
    char shown[1100];
    zc_text_escape(shown, sizeof shown, name);
    return name.len > 0 && zc_slice_is(name, shown) && shown[0] != ':' &&
           (shown[0] != '-' || l->options_over);
}

static void print_names(const struct line *l, const char *json, size_t len)
{
    struct zc_buf copy = {0};
    struct zc_json j;
    struct zc_json_value v, names = {.type = ZC_JSON_NULL};
    struct zc_slice key;
    bool first = true, bad = false;
    if (zc_buf_append(&copy, json, len) != 0)
        return;
    zc_json_init(&j, copy.data, copy.len);
    if (zc_json_eat(&j, '{'))
        while (names.type == ZC_JSON_NULL && zc_json_member(&j, &first, 1, &key, &bad, &v))
            if (zc_slice_is(key, "names") && v.type == ZC_JSON_ARRAY)
                names = v;
    if (names.type == ZC_JSON_ARRAY) {
        zc_json_init(&j, (uint8_t *)(uintptr_t)names.text.data, names.text.len);
        zc_json_eat(&j, '[');
        for (first = true; zc_json_element(&j, &first, 2, &v);)
            if (offers_name(l, v.text))
                printf("%.*s\n", (int)v.text.len, (const char *)v.text.data);
    }
    zc_buf_done(&copy);
}

static void offer_mailboxes(const struct line *l)
{
    const struct itimerval limit = {.it_value = {.tv_usec = HUB_MS * 1000}};
    struct sigaction act = {.sa_handler = on_alarm};
    struct zc_args args = {.listen = l->listen};
    struct zmqcat *bus = NULL;
    const char *json;
    size_t len;
    sigaction(SIGALRM, &act, NULL);
    setitimer(ITIMER_REAL, &limit, NULL);
    if (zc_open_again(&args, NULL, NULL, &bus) == ZMQCAT_OK &&
        zmqcat_query(bus, "list", l->current, strlen(l->current), "\"max\":1000", &json, &len) ==
            ZMQCAT_OK)
        print_names(l, json, len);
    zmqcat_free(bus);
}

/* What the help of the verb calls its argument number n, without brackets; "" beyond the last. */
static void argument_name(const struct zc_verb *v, int n, char ret_name[64])
{
    const char *p = v->arguments;
    for (; *p != '\0'; n--) {
        size_t len = strcspn(p, " ");
        bool dashes = len == 2 && strncmp(p, "--", 2) == 0;
        if (n == 0 && !dashes) {
            p += *p == '[';
            snprintf(ret_name, 64, "%.*s", (int)strcspn(p, " ]."), p);
            return;
        }
        n += dashes;
        p += len + (p[len] == ' ');
    }
    ret_name[0] = '\0';
}

static void offer_choices(const struct line *l, const char *choices)
{
    while (*choices != '\0') {
        char word[32];
        size_t len = strcspn(choices, "|");
        snprintf(word, sizeof word, "%.*s", (int)len, choices);
        if (starts(word, l->current))
            puts(word);
        choices += len + (choices[len] == '|');
    }
}

static void offer_argument(const struct line *l)
{
    char name[64];
    argument_name(l->verb, l->positional, name);
    if (strcmp(name, "NAME") == 0 || strcmp(name, "FROM") == 0 || strcmp(name, "TO") == 0)
        offer_mailboxes(l);
    else if (strcmp(name, "COMMAND") == 0)
        puts(":commands");
    else if (strcmp(name, "FILE") == 0 || strcmp(name, "PATH") == 0 || l->options_over ||
             l->verb->become != NULL)
        puts(":files");
    else if (strchr(name, '|') != NULL)
        offer_choices(l, name);
}

/* serve and join have the options of a daemon, which lists them itself: `  --name VALUE  help`. */
static void offer_daemon_options(const struct line *l)
{
    bool hub = strcmp(l->verb->name, "serve") == 0;
    char text[256], name[64], other[64], last[64] = "";
    FILE *help = popen(hub ? "zmqcat-hub --help 2>&1" : "zmqcat-spoke --help 2>&1", "r");
    while (help != NULL && fgets(text, sizeof text, help) != NULL) {
        int names = sscanf(text, "  %63[a-z-], %63[a-z-]", name, other);
        if (names < 1 || !starts(name, "--") || strcmp(name, last) == 0)
            continue;
        strcpy(last, name);
        if (starts(name, l->current))
            puts(name);
        if (names == 2 && starts(other, l->current))
            puts(other);
    }
    if (help != NULL)
        pclose(help);
}

static void offer_value(const struct line *l)
{
    if (strcmp(l->option.value, "FILE") == 0 || strcmp(l->option.value, "ADDR") == 0)
        puts(":files");
}

int zc_complete_words(char **words, int count)
{
    struct zc_args_row row;
    if (count == 0)
        return 0;
    struct line l = {.current = words[count - 1]};
    if (count == 1) {
        for (const struct zc_verb *v = zc_verbs; v->name != NULL; v++)
            offer(l.current, v->name, v->help);
        if (l.current[0] == '-') {
            offer(l.current, "--help", "this help");
            offer(l.current, "--version", "the version");
        }
        return 0;
    }
    l.verb = find_verb(words[0]);
    if (l.verb == NULL)
        return 0;
    read_line(&l, words, count);
    if (l.wants_value) {
        offer_value(&l);
    } else if (!l.options_over && l.current[0] == '-' && strchr(l.current, '=') != NULL) {
        if (find_option(l.verb, l.current, &l.option) && l.option.value != NULL)
            offer_value(&l);
    } else if (!l.options_over && l.current[0] == '-' && l.verb->become != NULL) {
        offer_daemon_options(&l);
    } else if (!l.options_over && l.current[0] == '-') {
        for (size_t i = 0; zc_args_row(i, &row); i++) {
            char word[64];
            snprintf(word, sizeof word, "--%s", row.name);
            if ((l.verb->options & row.bit) != 0)
                offer(l.current, word, row.help);
        }
    } else {
        offer_argument(&l);
    }
    return 0;
}
