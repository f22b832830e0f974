/*
 * zmqcat: the command. Its verbs are in the table of verbs.c.
 * Source: docs/man/zmqcat.1. Deliberately absent: verbs and options whose feature does not exist;
 * they are unknown like any typing error, so that no script relies on what does nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "args.h"
#include "say.h"
#include "verbs.h"

#define LINE_WIDTH 80
#define LEFT_WIDTH 26

/* Prints text in lines of at most LINE_WIDTH columns. */
static void paragraph(const char *text)
{
    while (strlen(text) > LINE_WIDTH) {
        int n = LINE_WIDTH;
        while (text[n] != ' ')
            n--;
        printf("%.*s\n", n, text);
        text += n + 1;
    }
    puts(text);
}

/* Standard output must have taken the text. */
static int printed(const char *verb)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    return zc_say_fail(1, verb != NULL ? verb : "standard output", NULL, strerror(errno));
}

static int help(void)
{
    puts("usage: zmqcat COMMAND [OPTION...] [ARGUMENT...]\n\n"
         "Mailboxes, topics and requests for the processes of one host or of many.\n");
    for (const struct zc_verb *v = zc_verbs; v->name != NULL; v++) {
        char left[64];
        snprintf(left, sizeof left, "%s %s", v->name, v->arguments);
        /* The first sentence of the verb's own help. */
        const char *gap = strlen(left) > LEFT_WIDTH ? "\n" : "";
        printf("  %-*s%s%*s %.*s\n", LEFT_WIDTH, left, gap, *gap ? LEFT_WIDTH + 2 : 0, "",
               (int)strcspn(v->help, ":."), v->help);
    }
    puts("");
    paragraph("`zmqcat COMMAND --help` tells more; zmqcat(1) tells all; --version prints the "
              "version. Options stand after the "
              "command, also after arguments; -- ends them. The hub's address: --listen, else "
              "ZMQCAT_LISTEN, else the "
              "system's or the user's socket.");
    puts("");
    paragraph("Exit status: 0 done, 1 failed, 2 usage, 3 nothing in time, 4 refused, 78 unusable "
              "configuration.");
    return printed(NULL);
}

static int verb_help(const struct zc_verb *v)
{
    printf("usage: zmqcat %s%s%s%s\n\n", v->name, v->options != 0 ? " [OPTION...]" : "",
           v->arguments[0] != '\0' ? " " : "", v->arguments);
    paragraph(v->help);
    if (v->options != 0) {
        puts("");
        zc_args_help(v->options);
    }
    return printed(v->name);
}

static bool asks_help(char **argv)
{
    for (; *argv != NULL && strcmp(*argv, "--") != 0; argv++)
        if (strcmp(*argv, "--help") == 0 || strcmp(*argv, "-h") == 0)
            return true;
    return false;
}

static int run(const struct zc_verb *v, int argc, char **argv)
{
    if (v->become != NULL)
        return asks_help(argv) ? verb_help(v) : v->become(argc, argv);
    struct zc_args args;
    int status = zc_args_parse(argc, argv, v->options, &args);
    if (status == 0 && args.help)
        status = verb_help(v);
    else if (status == 0 && v->missing != NULL && args.rest_count == 0)
        status = zc_say_usage(v->name, "missing %s", v->missing);
    else if (status == 0 && v->most >= 0 && args.rest_count > v->most)
        status = zc_say_usage(v->name, "too many arguments");
    else if (status == 0)
        status = v->run(&args);
    zc_args_done(&args);
    return status;
}

/* A closed standard stream must not become the socket: what is printed would go to the hub. What
 * takes its place cannot be used, so that its use fails. */
static void fill_standard_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)!open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
}

int main(int argc, char **argv)
{
    fill_standard_streams();
    signal(SIGPIPE, SIG_IGN);
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return help();
    if (strcmp(argv[1], "--version") == 0) {
        puts("zmqcat " ZC_VERSION);
        return printed(NULL);
    }
    for (const struct zc_verb *v = zc_verbs; v->name != NULL; v++)
        if (strcmp(argv[1], v->name) == 0)
            return run(v, argc - 1, argv + 1);
    char shown[200];
    zc_say_escape(shown, sizeof shown, argv[1], strlen(argv[1]));
    fprintf(stderr, "zmqcat: %s: unknown %s\nhint: see `zmqcat --help`\n", shown,
            argv[1][0] == '-' ? "option" : "command");
    return 2;
}
