/*
 * The environment of a command of `work`: what is ours, and what the message says. Values come from
 * outside, so that all names begin with ZMQCAT_.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"

#define HEADER_PREFIX "ZMQCAT_HEADER_"

extern char **environ;

/* A list that grows; vars is NULL-terminated or NULL. */
struct list {
    char **vars;
    size_t count;
    bool failed;
};

static void add(struct list *l, char *var)
{
    char **more = var != NULL ? realloc(l->vars, (l->count + 2) * sizeof *more) : NULL;
    if (more == NULL) {
        l->failed = true;
        free(var);
        return;
    }
    l->vars = more;
    l->vars[l->count++] = var;
    l->vars[l->count] = NULL;
}

/* NAME=value; a value with a NUL cannot be told and is left out. */
static void add_text(struct list *l, const char *name, const char *value, size_t len)
{
    if (len > 0 && memchr(value, '\0', len) != NULL)
        return;
    size_t name_len = strlen(name);
    char *var = malloc(name_len + len + 2);
    if (var != NULL) {
        memcpy(var, name, name_len);
        var[name_len] = '=';
        if (len > 0)
            memcpy(var + name_len + 1, value, len);
        var[name_len + 1 + len] = '\0';
    }
    add(l, var);
}

static void add_number(struct list *l, const char *name, int64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, value);
    add_text(l, name, text, strlen(text));
}

/* The header `my-key` as ZMQCAT_HEADER_MY_KEY; other characters than letters, digits, - and _ have
 * no such name. */
static void add_header(struct list *l, const struct zmqcat_header *h)
{
    char name[256] = HEADER_PREFIX;
    size_t len = strlen(HEADER_PREFIX);
    if (h->key_len >= sizeof name - len)
        return;
    for (size_t i = 0; i < h->key_len; i++) {
        unsigned char c = (unsigned char)h->key[i];
        if (c >= 0x80 || (!isalnum(c) && c != '-' && c != '_'))
            return;
        name[len++] = c == '-' ? '_' : (char)toupper(c);
    }
    name[len] = '\0';
    add_text(l, name, h->value, h->value_len);
}

/* What an outer `work` has set for another message. */
static bool is_ours(const char *var)
{
    static const char *const names[] = {"ID", "ATTEMPT", "MAILBOX", "FROM", "BY", "AT"};
    if (strncmp(var, "ZMQCAT_", 7) != 0)
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(var + 7, names[i], strlen(names[i])) == 0 && var[7 + strlen(names[i])] == '=')
            return true;
    return strncmp(var, HEADER_PREFIX, strlen(HEADER_PREFIX)) == 0;
}

char **zc_job_env(const struct zc_args *args, const struct zmqcat_msg *m)
{
    struct list l = {0};
    for (char **var = environ; *var != NULL; var++)
        if (!is_ours(*var) && (args->listen == NULL ||
                               strncmp(*var, "ZMQCAT_LISTEN=", strlen("ZMQCAT_LISTEN=")) != 0))
            add(&l, strdup(*var));
    if (args->listen != NULL) /* so that the command reaches the same bus */
        add_text(&l, "ZMQCAT_LISTEN", args->listen, strlen(args->listen));
    add_text(&l, "ZMQCAT_MAILBOX", args->rest[0], strlen(args->rest[0]));
    add_text(&l, "ZMQCAT_ID", m->id, m->id_len);
    add_text(&l, "ZMQCAT_FROM", m->from, m->from_len);
    add_text(&l, "ZMQCAT_BY", m->by, m->by_len);
    add_number(&l, "ZMQCAT_ATTEMPT", m->attempt > 0 ? m->attempt : 1);
    add_number(&l, "ZMQCAT_AT", m->at_ms);
    for (size_t i = 0; i < m->headers_count; i++)
        add_header(&l, &m->headers[i]);
    if (!l.failed)
        return l.vars;
    zc_job_env_free(l.vars);
    return NULL;
}

void zc_job_env_free(char **env)
{
    for (char **var = env; var != NULL && *var != NULL; var++)
        free(*var);
    free(env);
}
