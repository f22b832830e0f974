/*
 * The same JSON document in another form, for tests of the shorter ways that the usual form has.
 */
#ifndef ZC_TESTS_UNIT_LOOSEN_H
#define ZC_TESTS_UNIT_LOOSEN_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* The document with a space before each byte that stands between the members of its object. Returns
 * its length, at most twice len. */
static inline size_t loosen(const char *text, size_t len, char *ret_loose)
{
    size_t n = 0;
    int depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (!quoted && depth <= 1)
            ret_loose[n++] = ' ';
        ret_loose[n++] = c;
        if (quoted && c == '\\' && i + 1 < len)
            ret_loose[n++] = text[++i];
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && (c == '{' || c == '['))
            depth++;
        else if (!quoted && (c == '}' || c == ']'))
            depth--;
        /* A number or a word is not to be torn apart. */
        while (!quoted && i + 1 < len && memchr("{}[]:,\"", c, 7) == NULL &&
               memchr("{}[]:,\"", text[i + 1], 7) == NULL)
            ret_loose[n++] = text[++i];
    }
    return n;
}

#endif
