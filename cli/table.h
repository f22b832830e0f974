/* A JSON object as lines of `key value`, for people. */
#ifndef ZC_CLI_TABLE_H
#define ZC_CLI_TABLE_H

#include "base/buf.h"
#include "out.h"

/* Nested members get dotted keys: `storage.state`. json is overwritten. False: no JSON object. */
bool zc_table_print(struct zc_out *out, uint8_t *json, size_t len);

#endif
