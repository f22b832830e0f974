/* What can stand at the end of a command line that is being typed. */
#ifndef ZC_CLI_COMPLETE_H
#define ZC_CLI_COMPLETE_H

#include "args.h"

/* words: what follows `zmqcat`, the last one unfinished. Prints a line for each word that may take
 * its place, with a tab and what it is where that helps; `:files` or `:commands` leave it to the
 * shell. Says nothing and returns 0 when there is nothing, also for a hub that does not answer at
 * once. */
int zc_complete_words(char **words, int count);

#endif
