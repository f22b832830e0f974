/* Time, latencies and the line that a work prints. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "load.h"

static uint32_t *latencies;
static long latencies_count, latencies_max;

uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void fail(const char *format, ...)
{
    va_list args;
    fprintf(stderr, "load: ");
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

void latency_start(long count_max)
{
    latencies = calloc((size_t)count_max, sizeof(*latencies));
    if (latencies == NULL)
        fail("out of memory");
    latencies_count = 0;
    latencies_max = count_max;
}

void latency_add(uint64_t ns)
{
    if (latencies_count < latencies_max)
        latencies[latencies_count++] = ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static double percentile_us(int percent)
{
    return latencies[(latencies_count - 1) * percent / 100] / 1e3;
}

void result_print(uint64_t operations, uint64_t took_ns)
{
    printf("{\"ops\":%llu,\"seconds\":%.9f", (unsigned long long)operations, (double)took_ns / 1e9);
    if (latencies_count > 0) {
        qsort(latencies, (size_t)latencies_count, sizeof(*latencies), compare);
        printf(",\"p50_us\":%.3f,\"p99_us\":%.3f,\"max_us\":%.3f", percentile_us(50),
               percentile_us(99), percentile_us(100));
    }
    puts("}");
    fflush(stdout);
    free(latencies);
    latencies = NULL;
    latencies_count = 0;
}
