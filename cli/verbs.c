/* The verbs: what each is called, takes and does. Each is in a file of its own group. */
#include "verbs.h"

#include <stddef.h>

#define BUS (ZC_ARGS_LISTEN | ZC_ARGS_NAME | ZC_ARGS_HELP)
#define SENDING (BUS | ZC_ARGS_FILE | ZC_ARGS_HEADER | ZC_ARGS_ID | ZC_ARGS_TTL)
#define ADMIN (ZC_ARGS_LISTEN | ZC_ARGS_CONTROL | ZC_ARGS_HELP)

const struct zc_verb zc_verbs[] = {
    {"put", "NAME [TEXT...]",
     "Puts a message into the mailbox NAME: the arguments joined by one space, else --file, else "
     "standard input.",
     "mailbox", -1, SENDING | ZC_ARGS_DELAY | ZC_ARGS_LINES | ZC_ARGS_JSON | ZC_ARGS_IF_CONSUMER,
     zc_send_put},
    {"take", "NAME", "Takes the oldest message of the mailbox NAME, waits for one, prints it.",
     "mailbox", 1, BUS | ZC_ARGS_COUNT | ZC_ARGS_FOLLOW | ZC_ARGS_RAW | ZC_ARGS_WAIT | ZC_ARGS_JSON,
     zc_receive_take},
    {"reserve", "NAME",
     "Holds a message: prints its delivery on the first line, then the payload; acts on a line "
     "`ack` or `nack` of standard input, whose end gives the message back.",
     "mailbox", 1, BUS | ZC_ARGS_LEASE | ZC_ARGS_WAIT | ZC_ARGS_ACK | ZC_ARGS_JSON,
     zc_hold_reserve},
    {"work", "NAME -- COMMAND [ARGUMENT...]",
     "Runs COMMAND for each message of the mailbox NAME: the payload is its standard input. Exit 0 "
     "acknowledges the message, all else gives it back for 1, 2, 4 ... 60 seconds.",
     "mailbox", -1,
     BUS | ZC_ARGS_JOBS | ZC_ARGS_REPLY | ZC_ARGS_LEASE | ZC_ARGS_COUNT | ZC_ARGS_WAIT |
         ZC_ARGS_FILTER,
     zc_work_run},
    {"ready", "NAME",
     "Gets one job as a worker and prints it. Without --ack the job is given back at exit.",
     "service", 1, BUS | ZC_ARGS_WAIT | ZC_ARGS_ACK | ZC_ARGS_JSON, zc_receive_ready},
    {"pub", "TOPIC [TEXT...]",
     "Publishes to all subscriptions of TOPIC: the arguments joined by one space, else --file, "
     "else standard input.",
     "topic", -1, SENDING | ZC_ARGS_NEED_SUB, zc_send_pub},
    {"sub", "[PREFIX]",
     "Prints what is published on topics that begin with PREFIX: topic, TAB, sender, TAB, payload.",
     NULL, 1,
     BUS | ZC_ARGS_COUNT | ZC_ARGS_WAIT | ZC_ARGS_JSON | ZC_ARGS_NO_REPLAY | ZC_ARGS_FILTER,
     zc_follow_sub},
    {"req", "NAME [TEXT...]", "Asks a worker on NAME and prints its reply.", "service", -1,
     BUS | ZC_ARGS_FILE | ZC_ARGS_TIMEOUT | ZC_ARGS_RETRIES | ZC_ARGS_JSON, zc_ask_req},
    {"ping", "", "Prints pong when the hub answers.", NULL, 0, BUS | ZC_ARGS_VERBOSE | ZC_ARGS_JSON,
     zc_ask_ping},
    {"stat", "[NAME]", "Prints the counters of the mailbox NAME, or of all together.", NULL, 1,
     BUS | ZC_ARGS_JSON, zc_inspect_stat},
    {"ls", "[PREFIX]", "Prints the names of the mailboxes that begin with PREFIX.", NULL, 1,
     BUS | ZC_ARGS_JSON, zc_inspect_ls},
    {"peek", "NAME",
     "Prints the oldest message of the mailbox NAME and leaves it there. With --count, so many.",
     "mailbox", 1, BUS | ZC_ARGS_COUNT | ZC_ARGS_RAW | ZC_ARGS_JSON, zc_operate_peek},
    {"purge", "NAME",
     "Removes what waits in the mailbox NAME and prints how many these were. What somebody holds "
     "stays.",
     "mailbox", 1, BUS | ZC_ARGS_JSON, zc_operate_purge},
    {"mv", "FROM TO",
     "Moves messages from one mailbox to another, all or --count of them. Their order stays; "
     "prints how many were moved.",
     "mailbox to move from", 2, BUS | ZC_ARGS_COUNT | ZC_ARGS_JSON, zc_operate_mv},
    {"bind", "NAME PREFIX",
     "Puts publications into the mailbox NAME too. They are those whose topic begins with PREFIX.",
     "mailbox", 2, BUS, zc_operate_bind},
    {"unbind", "NAME PREFIX", "Ends what bind began.", "mailbox", 2, BUS, zc_operate_unbind},
    {"status", "", "Prints how the hub is, by its control socket.", NULL, 0, ADMIN | ZC_ARGS_JSON,
     zc_inspect_status},
    {"top", "",
     "Prints how the hub is, again and again: a page at a terminal, a line each time in a pipe.",
     NULL, 0, ADMIN | ZC_ARGS_JSON | ZC_ARGS_INTERVAL | ZC_ARGS_COUNT, zc_top_run},
    {"trace", "on|off", "Switches the hub's trace, one line of its log for each frame.",
     "`on` or `off`", 1, ADMIN, zc_inspect_trace},
    {"token", "", "Prints the token with which spokes join this hub. It is a secret.", NULL, 0,
     ADMIN, zc_token_show},
    {"rotate", "",
     "Replaces the secret in the hub's token and prints the new token. All spokes need it to come "
     "back.",
     NULL, 0, ADMIN, zc_token_rotate},
    {"drain", "",
     "Lets nothing new in, so that the mailboxes run empty. It lasts until the next start; of a "
     "spoke, new clients are refused.",
     NULL, 0, ADMIN, zc_admin_drain},
    {"revoke", "NODEKEY",
     "Shuts a spoke out of this hub, now and for good. The hub must have a list of allowed keys.",
     "node key", 1, ADMIN, zc_admin_revoke},
    {"reload", "",
     "Lets a hub read its lists of keys again, or a spoke its token. A file that cannot be used "
     "changes nothing, and the answer says why.",
     NULL, 0, ADMIN, zc_admin_reload},
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
    {"bench", "[put|pipelined|take|work|pub|req]...",
     "Measures the running bus: these operations, or all, for two seconds each or --count times, "
     "in a mailbox of its own.",
     NULL, -1, BUS | ZC_ARGS_SIZE | ZC_ARGS_COUNT | ZC_ARGS_JSON, zc_bench_run},
    {"store", "check|export|import|compact PATH",
     "Checks, exports, fills or compacts the mailbox directory PATH. No hub may use it. export "
     "writes lines of JSON, which import reads from standard input.",
     "action", 2, ZC_ARGS_JSON | ZC_ARGS_HELP, zc_store_run},
    {"completion", "bash|zsh|fish",
     "Prints the completion for a shell. It knows commands, options and the names of the hub's "
     "mailboxes.",
     "shell", -1, ZC_ARGS_HELP, zc_completion_run},
    {NULL},
};
