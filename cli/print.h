/* Messages on standard output. */
#ifndef ZC_CLI_PRINT_H
#define ZC_CLI_PRINT_H

#include "args.h"
#include "out.h"

/* The payload, with a newline when it lacks one and unless raw. */
void zc_print_payload(struct zc_out *out, const struct zmqcat_msg *m, bool raw);
/* As take and peek print one: JSON with --json, else the payload, with --raw as it is. */
void zc_print_message(struct zc_out *out, const struct zc_args *args, const struct zmqcat_msg *m);
/* topic TAB from TAB payload NEWLINE. */
void zc_print_delivery(struct zc_out *out, const struct zmqcat_msg *m);
/* One JSON object and a newline. */
void zc_print_json(struct zc_out *out, const struct zmqcat_msg *m);
/* JSON text that is valid UTF-8, with the characters escaped that would move a terminal's cursor or
 * reorder its text. */
void zc_print_json_text(struct zc_out *out, const char *json, size_t len);

#endif
