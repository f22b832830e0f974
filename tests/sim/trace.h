/* The last events of a seed as text, kept only while somebody looks at it. */
#ifndef ZC_TESTS_SIM_TRACE_H
#define ZC_TESTS_SIM_TRACE_H

#include <stdbool.h>
#include <stddef.h>

#define TRACE_LINES 60
#define TRACE_WIDTH 200

struct trace {
    char lines[TRACE_LINES][TRACE_WIDTH];
    size_t count;
    bool echo; /* print at once */
};

#endif
