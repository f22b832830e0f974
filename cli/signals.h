/*
 * Signals of the verbs that do something before they end: SIGINT, SIGTERM and SIGHUP. One that the
 * parent wants ignored stays so, as nohup does. None is lost between two looks: they are counted,
 * and a descriptor becomes readable.
 */
#ifndef ZC_CLI_SIGNALS_H
#define ZC_CLI_SIGNALS_H

#include <poll.h>
#include <stdbool.h>

/* What a verb may take to end after a signal, when a hub does not answer. */
#define ZC_SIGNALS_LAST_MS 800

/* From here on signals are only counted. False: errno says why not. */
bool zc_signals_count_them(void);
/* From here on the first signal calls at_first (NULL: nothing; it may do what a handler may) and
 * leaves the process last_s; that this is over, or another signal, ends it by the first one. */
bool zc_signals_catch(void (*at_first)(void), unsigned last_s);
/* SIGCHLD wakes too. */
bool zc_signals_of_children(void);
/* How many came; it only grows. */
int zc_signals_count(void);
/* Readable after a signal, until zc_signals_clear; -1: none are caught. */
int zc_signals_fd(void);
void zc_signals_clear(void);
/* While true, a signal ends the process at once, with exit status 0. */
void zc_signals_exit_at_once(bool at_once);
/* A zmqcat_poll_fn for after zc_signals_catch: from the first signal on, all waits together have
 * ZC_SIGNALS_LAST_MS. */
int zc_signals_poll(void *data, struct pollfd *hub, int timeout_ms);
/* Ends the process by the signal that came, as whoever waits for us expects; returns without one.
 */
void zc_signals_end(void);
/* As they were, for a process that was forked. */
void zc_signals_default(void);
/* The first that came, or 0. */
int zc_signals_first(void);

#endif
