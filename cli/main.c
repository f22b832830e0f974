/*
 * zmqcat: the command. One table of verbs; each is in a file of its own group.
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
#include "base/check.h"
#include "say.h"
#include "verbs.h"

#define LINE_WIDTH 80

#define BUS (ZC_ARGS_LISTEN | ZC_ARGS_NAME | ZC_ARGS_HELP)
#define SENDING (BUS | ZC_ARGS_FILE | ZC_ARGS_HEADER | ZC_ARGS_ID | ZC_ARGS_TTL)
#define ADMIN (ZC_ARGS_LISTEN | ZC_ARGS_CONTROL | ZC_ARGS_HELP)

static const struct verb {
    const char *name, *arguments, *help;
    const char *missing; /* what the first argument is, when it must be there */
    int most;            /* positional arguments; -1: any number */
    uint32_t options;
    int (*run)(const struct zc_args *args);
    int (*become)(int argc, char **argv); /* instead: another program with these arguments */
} verbs[] = {
    {"put", "NAME [TEXT...]",
     "Puts a message into the mailbox NAME: the arguments joined by one space, else --file, else "
     "standard input.",
     "mailbox", -1, SENDING | ZC_ARGS_DELAY, zc_send_put},
    {"take", "NAME", "Takes the oldest message of the mailbox NAME, waits for one, prints it.",
     "mailbox", 1, BUS | ZC_ARGS_COUNT | ZC_ARGS_RAW | ZC_ARGS_WAIT | ZC_ARGS_JSON,
     zc_receive_take},
    {"reserve", "NAME",
     "Holds a message: prints its delivery on the first line, then the payload; acts on a line "
     "`ack` or `nack` of standard input, whose end gives the message back.",
     "mailbox", 1, BUS | ZC_ARGS_LEASE | ZC_ARGS_WAIT | ZC_ARGS_ACK, zc_hold_reserve},
    {"ready", "NAME",
     "Gets one job as a worker and prints it. Without --ack the job is given back at exit.",
     "service", 1, BUS | ZC_ARGS_WAIT | ZC_ARGS_ACK, zc_receive_ready},
    {"pub", "TOPIC [TEXT...]",
     "Publishes to all subscriptions of TOPIC: the arguments joined by one space, else --file, "
     "else standard input.",
     "topic", -1, SENDING | ZC_ARGS_NEED_SUB, zc_send_pub},
    {"sub", "[PREFIX]",
     "Prints what is published on topics that begin with PREFIX: topic, TAB, sender, TAB, payload.",
     NULL, 1, BUS | ZC_ARGS_COUNT | ZC_ARGS_WAIT | ZC_ARGS_JSON | ZC_ARGS_NO_REPLAY, zc_follow_sub},
    {"req", "NAME [TEXT...]", "Asks a worker on NAME and prints its reply.", "service", -1,
     BUS | ZC_ARGS_FILE | ZC_ARGS_TIMEOUT | ZC_ARGS_RETRIES, zc_ask_req},
    {"ping", "", "Prints pong when the hub answers.", NULL, 0, BUS | ZC_ARGS_VERBOSE, zc_ask_ping},
    {"stat", "[NAME]", "Prints the counters of the mailbox NAME, or of all together.", NULL, 1,
     BUS | ZC_ARGS_JSON, zc_inspect_stat},
    {"ls", "[PREFIX]", "Prints the names of the mailboxes that begin with PREFIX.", NULL, 1,
     BUS | ZC_ARGS_JSON, zc_inspect_ls},
    {"status", "", "Prints how the hub is, by its control socket.", NULL, 0, ADMIN | ZC_ARGS_JSON,
     zc_inspect_status},
    {"trace", "on|off", "Switches the hub's trace, one line of its log for each frame.",
     "`on` or `off`", 1, ADMIN, zc_inspect_trace},
    {"token", "", "Prints the token with which spokes join this hub. It is a secret.", NULL, 0,
     ADMIN, zc_token_show},
    {"rotate", "",
     "Replaces the secret in the hub's token and prints the new token. All spokes need it to come "
     "back.",
     NULL, 0, ADMIN, zc_token_rotate},
    {"keygen", "FILE", "Makes a key file for a hub or a spoke and prints its node key.", "file", 1,
     ZC_ARGS_HUB | ZC_ARGS_CLIENT | ZC_ARGS_HELP, zc_key_gen},
    {"nodekey", "FILE", "Prints the node key of a key file: what a hub may allow.", "file", 1,
     ZC_ARGS_HELP, zc_key_node},
    {"serve", "[OPTION...]",
     "Runs a hub: starts zmqcat-hub with these options, and prints its token. `zmqcat-hub --help` "
     "lists them all.",
     NULL, -1, 0, NULL, zc_serve_hub},
    {"join", "[TOKEN] [OPTION...]",
     "Joins a hub: starts zmqcat-spoke with these options. `zmqcat-spoke --help` lists them all.",
     NULL, -1, 0, NULL, zc_serve_spoke},
};

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
    for (size_t i = 0; i < ZC_ARRAY_LEN(verbs); i++) {
        char left[64];
        snprintf(left, sizeof left, "%s %s", verbs[i].name, verbs[i].arguments);
        /* The first sentence of the verb's own help. */
        printf("  %-26s %.*s\n", left, (int)strcspn(verbs[i].help, ":."), verbs[i].help);
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

static int verb_help(const struct verb *v)
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

static int run(const struct verb *v, int argc, char **argv)
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

/* A closed standard stream must not become the socket: what is printed would go to the hub. */
static void fill_standard_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)!open("/dev/null", fd == 0 ? O_RDWR : O_RDONLY);
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
    for (size_t i = 0; i < ZC_ARRAY_LEN(verbs); i++)
        if (strcmp(argv[1], verbs[i].name) == 0)
            return run(&verbs[i], argc - 1, argv + 1);
    char shown[200];
    zc_say_escape(shown, sizeof shown, argv[1], strlen(argv[1]));
    fprintf(stderr, "zmqcat: %s: unknown %s\nhint: see `zmqcat --help`\n", shown,
            argv[1][0] == '-' ? "option" : "command");
    return 2;
}
