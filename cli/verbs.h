/* The verbs of the command. */
#ifndef ZC_CLI_VERBS_H
#define ZC_CLI_VERBS_H

#include "args.h"

struct zc_verb {
    const char *name, *arguments, *help;
    const char *missing; /* what the first argument is, when it must be there */
    int most;            /* positional arguments; -1: any number */
    uint32_t options;
    int (*run)(const struct zc_args *args);
    int (*become)(int argc, char **argv); /* instead: another program with these arguments */
};

/* The last one has no name. */
extern const struct zc_verb zc_verbs[];

/* What each verb does; returns the exit status. */
int zc_send_put(const struct zc_args *args);
int zc_lines_put(const struct zc_args *args);
int zc_send_pub(const struct zc_args *args);
int zc_receive_take(const struct zc_args *args);
int zc_receive_ready(const struct zc_args *args);
int zc_hold_reserve(const struct zc_args *args);
int zc_work_run(const struct zc_args *args);
int zc_follow_sub(const struct zc_args *args);
int zc_follow_take(const struct zc_args *args);
int zc_ask_req(const struct zc_args *args);
int zc_ask_ping(const struct zc_args *args);
int zc_inspect_stat(const struct zc_args *args);
int zc_inspect_ls(const struct zc_args *args);
int zc_inspect_status(const struct zc_args *args);
int zc_inspect_trace(const struct zc_args *args);
int zc_completion_run(const struct zc_args *args);
int zc_top_run(const struct zc_args *args);
int zc_operate_peek(const struct zc_args *args);
int zc_operate_purge(const struct zc_args *args);
int zc_operate_mv(const struct zc_args *args);
int zc_operate_bind(const struct zc_args *args);
int zc_operate_unbind(const struct zc_args *args);
int zc_store_run(const struct zc_args *args);
int zc_bench_run(const struct zc_args *args);
int zc_key_gen(const struct zc_args *args);
int zc_key_node(const struct zc_args *args);
int zc_token_show(const struct zc_args *args);
int zc_token_rotate(const struct zc_args *args);
int zc_admin_revoke(const struct zc_args *args);
int zc_admin_reload(const struct zc_args *args);
int zc_admin_drain(const struct zc_args *args);
/* Become zmqcat-hub and zmqcat-spoke with these arguments (argv[0] is the verb); they return only
 * on failure. */
int zc_serve_hub(int argc, char **argv);
int zc_serve_spoke(int argc, char **argv);

#endif
