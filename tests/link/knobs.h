/* Knobs as words, and counts as JSON. */
#ifndef ZC_TESTS_LINK_KNOBS_H
#define ZC_TESTS_LINK_KNOBS_H

#include <stdio.h>

#include "flow.h"

/*
 * Sets k from `name=value` words with blanks between; the line is taken apart. NULL: all were good.
 * Otherwise the word that was not, and k is as before.
 */
const char *knobs_read(char *line, struct flow_knobs *k);
/* The names, what they take and do, a line each. */
void knobs_help(FILE *out);
/* One object, no end of line. */
void knobs_counts(FILE *out, const struct flow *f);

#endif
