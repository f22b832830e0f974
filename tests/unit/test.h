/*
 * Unit tests: TEST(name) { CHECK(cond); } in any number of files of one program. Each test runs in
 * order; a failed CHECK is printed with its place and the program exits 1. The last line is
 * "N passed, N failed".
 */
#ifndef ZC_TESTS_UNIT_TEST_H
#define ZC_TESTS_UNIT_TEST_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct test {
    const char *name;
    void (*run)(void);
    struct test *next;
};

static struct test *test_first, **test_tail = &test_first;
static int test_faults;
/* Each test runs so often; a header may want more, and look which round it is. */
static int test_rounds = 1, test_round;

#define TEST(id)                                                                                   \
    static void test_##id(void);                                                                   \
    static struct test test_entry_##id = {#id, test_##id, NULL};                                   \
    __attribute__((constructor)) static void test_add_##id(void)                                   \
    {                                                                                              \
        *test_tail = &test_entry_##id;                                                             \
        test_tail = &test_entry_##id.next;                                                         \
    }                                                                                              \
    static void test_##id(void)

#define CHECK(cond)                                                                                \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            test_faults++;                                                                         \
            printf("%s:%d: %s\n", __FILE__, __LINE__, #cond);                                      \
        }                                                                                          \
    } while (0)

#define CHECK_INT(got, want)                                                                       \
    do {                                                                                           \
        long long got_ = (long long)(got), want_ = (long long)(want);                              \
        if (got_ != want_) {                                                                       \
            test_faults++;                                                                         \
            printf("%s:%d: %s is %lld, want %lld\n", __FILE__, __LINE__, #got, got_, want_);       \
        }                                                                                          \
    } while (0)

int main(int argc, char **argv)
{
    int passed = 0, failed = 0;
    for (struct test *t = test_first; t != NULL; t = t->next) {
        if (argc > 1 && strcmp(argv[1], t->name) != 0)
            continue;
        test_faults = 0;
        for (test_round = 0; test_faults == 0 && test_round < test_rounds; test_round++)
            t->run();
        if (test_faults > 0) {
            failed++;
            printf("FAIL %s, round %d of %d\n", t->name, test_round, test_rounds);
        } else {
            passed++;
        }
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0;
}

#endif
