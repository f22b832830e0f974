/* What the files of the JSON scanner share. */
#ifndef ZC_BASE_JSON_SCAN_H
#define ZC_BASE_JSON_SCAN_H

#include "base/json.h"

/* Keeps the first fault; always false. */
static inline bool zc_json_fail(struct zc_json *j, const char *error)
{
    if (j->error == NULL)
        j->error = error;
    return false;
}

/* Decodes a string of any kind in place; the opening quote is at j->pos. */
bool zc_json_string_decode(struct zc_json *j, struct zc_slice *ret_text, bool *ret_utf8_bad);
/* Moves past a string without changing it. */
bool zc_json_string_skip(struct zc_json *j);

#endif
