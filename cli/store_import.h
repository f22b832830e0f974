/* Standard input of `store import`, and what is made of it. */
#ifndef ZC_CLI_STORE_IMPORT_H
#define ZC_CLI_STORE_IMPORT_H

#include "host/import.h"
#include "host/rebuild.h"
#include "node/dump.h"
#include "store.h"

struct zc_store_import {
    struct zc_store *s;
    struct zc_rebuild made;
    struct zc_buf in; /* read, from `used` on not yet looked at */
    size_t used;
    bool eof;
    uint64_t bytes;       /* of the input, looked at */
    uint64_t line, lines; /* number of the line at work; lines that count for `end` */
    bool headed, ended;
    uint64_t messages, bindings, remembered;
    struct zc_dump_line parsed;
    char why[ZC_WHY_MAX];
};

/* Appends what is on standard input to im->made. 0, or an error with im->why. */
ZC_MUST_CHECK int zc_store_import_lines(struct zc_store_import *im);

#endif
