/*
 * What the output of all sessions together may cost: limits.output_bytes, the budget.
 *
 * Above it each session has a small share. One that has more waiting is treated as one that is over
 * its own bound: it is not read from, its waiters stand aside, publications for it are dropped and
 * counted. Whoever reads goes on, with one frame at a time if need be. It ends when a quarter of
 * the budget is free.
 *
 * That frame is what makes the budget soft: many sessions times one large frame. At twice the
 * budget sessions end, the one first whose output stands still the longest; what they have not
 * received goes back as with any end. What others answer to a session (rep) cannot be held back,
 * and is held by the same.
 */
#ifndef ZC_ZMQC_BUDGET_H
#define ZC_ZMQC_BUDGET_H

#include "zmqc/broker.h"

#define ZC_BUDGET_SHARE 8192

/* Something was added: puts sessions aside when that was too much. */
void zc_budget_rose(struct zc_broker *b);
/* Ends sessions above twice the budget. */
void zc_budget_enforce(struct zc_broker *b);
/* Something was freed: lets them go on when that is enough. */
void zc_budget_fell(struct zc_broker *b);

#endif
