/*
 * The simulator: whole hubs with seeded clients, disks and crashes, judged by a naive model.
 *
 *   sim [--seeds FIRST-LAST] [--steps N] [--no-self-test]
 *   sim --seed N [--verbose] [--steps N] [--break NAME]
 *   sim --break NAME [--seeds FIRST-LAST]
 *
 * A seed is a test. One seed gives one history: every tenth is run twice and must send the same
 * bytes. The self-test runs worlds that lie (liar.c) and must find each lie.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"
#include "trace.h"

struct options {
    uint64_t first, last;
    uint32_t steps;
    bool one, verbose, self_test;
    const char *liar;
};

struct result {
    bool failed;
    char failure[600];
    uint64_t hash, frames, crashes, faults, losses_allowed, moved, indexes;
    const char *profile;
};

static struct result run(const struct options *o, uint64_t seed, const char *liar,
                         struct trace *trace)
{
    struct world *w = world_new(seed, liar);
    struct result r = {.profile = w->p.name};
    w->trace = trace;
    if (o->steps > 0)
        w->p.steps = o->steps;
    run_seed(w);
    r.failed = w->failed;
    memcpy(r.failure, w->failure, sizeof r.failure);
    r.hash = w->hash;
    r.frames = w->frames;
    r.crashes = w->crashes;
    r.faults = w->disk.faults_done;
    r.losses_allowed = w->losses_allowed;
    r.moved = w->moved;
    r.indexes = w->disk.indexes_written;
    world_free(w);
    return r;
}

static void print_trace(const struct trace *t)
{
    size_t from = t->count > TRACE_LINES ? t->count - TRACE_LINES : 0;
    for (size_t i = from; i < t->count; i++)
        puts(t->lines[i % TRACE_LINES]);
}

/* The seed again, this time with its last events. */
static void report(const struct options *o, uint64_t seed, const struct result *r)
{
    struct trace *trace = calloc(1, sizeof *trace);
    struct result again;
    printf("FAIL seed %llu (%s): %s\n", (unsigned long long)seed, r->profile, r->failure);
    if (trace == NULL)
        return;
    again = run(o, seed, o->liar, trace);
    print_trace(trace);
    if (strcmp(again.failure, r->failure) != 0)
        printf("the second run ended with: %s\n", again.failure);
    printf("run it again: sim --seed %llu --verbose", (unsigned long long)seed);
    if (o->steps > 0)
        printf(" --steps %u", o->steps);
    printf("%s%s\n", o->liar != NULL ? " --break " : "", o->liar != NULL ? o->liar : "");
    free(trace);
}

static bool run_test(const struct options *o, uint64_t seed)
{
    struct result r = run(o, seed, NULL, NULL);
    if (!r.failed && seed % 10 == 0) {
        struct result again = run(o, seed, NULL, NULL);
        if (again.hash != r.hash) {
            printf("FAIL seed %llu (%s): two runs gave different output\n",
                   (unsigned long long)seed, r.profile);
            return false;
        }
    }
    if (r.failed)
        report(o, seed, &r);
    return !r.failed;
}

/* True when some seed finds the lie. */
static bool run_lie(const struct options *o, const char *lie, bool say)
{
    for (uint64_t seed = o->first; seed <= o->last; seed++) {
        struct result r = run(o, seed, lie, NULL);
        if (!r.failed)
            continue;
        if (say)
            printf("lie %s found by seed %llu: %s\n", lie, (unsigned long long)seed, r.failure);
        return true;
    }
    printf("FAIL lie %s was not found by seeds %llu-%llu\n", lie, (unsigned long long)o->first,
           (unsigned long long)o->last);
    return false;
}

static int run_one(const struct options *o)
{
    struct trace *trace = calloc(1, sizeof *trace);
    struct result r;
    if (trace == NULL)
        return 1;
    trace->echo = o->verbose;
    r = run(o, o->first, o->liar, trace);
    if (r.failed && !o->verbose)
        print_trace(trace);
    printf("seed %llu (%s): %s\n%llu frames, %llu crashes, %llu disk faults, %llu losses allowed, "
           "%llu records moved, %llu indexes, hash %016llx\n",
           (unsigned long long)o->first, r.profile, r.failed ? r.failure : "sound",
           (unsigned long long)r.frames, (unsigned long long)r.crashes,
           (unsigned long long)r.faults, (unsigned long long)r.losses_allowed,
           (unsigned long long)r.moved, (unsigned long long)r.indexes, (unsigned long long)r.hash);
    printf("%d passed, %d failed\n", !r.failed, r.failed);
    free(trace);
    return r.failed;
}

static void usage(FILE *out)
{
    fputs("usage: sim [--seeds FIRST-LAST | --seed N] [--steps N] [--verbose] [--break NAME] "
          "[--no-self-test]\n"
          "  --seeds      these seeds, each a test (1-200), then the self-test\n"
          "  --seed       one seed, and what it counted\n"
          "  --steps      length of a seed\n"
          "  --verbose    print every event\n"
          "  --break      a world that lies; the names are:",
          out);
    for (size_t i = 0; i < liar_count(); i++)
        fprintf(out, "%s%s", i % 7 == 0 ? "\n                " : " ", liar_name(i));
    fputc('\n', out);
}

static bool take_seeds(struct options *o, const char *text)
{
    unsigned long long first, last;
    if (sscanf(text, "%llu-%llu", &first, &last) != 2 || first > last)
        return false;
    o->first = first;
    o->last = last;
    return true;
}

static const char *parse(struct options *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(a, "--verbose") == 0) {
            o->verbose = true;
            continue;
        }
        if (strcmp(a, "--no-self-test") == 0) {
            o->self_test = false;
            continue;
        }
        if (value == NULL)
            return "an option lacks its value, or is unknown";
        i++;
        if (strcmp(a, "--seed") == 0) {
            o->first = o->last = strtoull(value, NULL, 10);
            o->one = true;
        } else if (strcmp(a, "--steps") == 0) {
            o->steps = (uint32_t)strtoul(value, NULL, 10);
        } else if (strcmp(a, "--break") == 0) {
            o->liar = value;
        } else if (strcmp(a, "--seeds") != 0) {
            return "unknown option";
        } else if (!take_seeds(o, value)) {
            return "--seeds wants FIRST-LAST";
        }
    }
    for (size_t i = 0; o->liar != NULL && i < liar_count(); i++)
        if (strcmp(o->liar, liar_name(i)) == 0)
            return NULL;
    return o->liar == NULL ? NULL : "--break wants one of these names";
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        usage(stdout);
        return 0;
    }
    struct options o = {.first = 1, .last = 200, .self_test = true};
    const char *wrong = parse(&o, argc, argv);
    unsigned long long passed = 0, failed = 0;
    if (wrong != NULL) {
        fprintf(stderr, "sim: %s\n", wrong);
        usage(stderr);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (o.one)
        return run_one(&o);
    if (o.liar != NULL) {
        bool found = run_lie(&o, o.liar, true);
        printf("%d passed, %d failed\n", found, !found);
        return !found;
    }
    for (uint64_t seed = o.first; seed <= o.last; seed++) {
        if (run_test(&o, seed))
            passed++;
        else
            failed++;
    }
    for (size_t i = 0; o.self_test && i < liar_count(); i++) {
        if (run_lie(&o, liar_name(i), false))
            passed++;
        else
            failed++;
    }
    printf("%llu passed, %llu failed\n", passed, failed);
    return failed > 0;
}
