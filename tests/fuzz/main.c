/*
 * Replays inputs through a harness where there is no libFuzzer: files and folders of files, named
 * on the command line. A fault ends the program, by a sanitizer or by ZC_ASSERT. The last line is
 * "N passed, N failed"; failed are inputs that cannot be read.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int passed, failed;

static void cannot(const char *path)
{
    printf("%s: %s\n", path, strerror(errno));
    failed++;
}

static void replay_file(const char *path, size_t size)
{
    FILE *f = fopen(path, "rb");
    uint8_t *data = malloc(size > 0 ? size : 1); /* exact, for AddressSanitizer */
    if (f == NULL || data == NULL || fread(data, 1, size, f) != size) {
        cannot(path);
    } else {
        /* Named before it runs, so that a fault has a name. */
        fprintf(stderr, "%s\n", path);
        LLVMFuzzerTestOneInput(data, size);
        passed++;
    }
    free(data);
    if (f != NULL)
        fclose(f);
}

static void replay(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        cannot(path);
        return;
    }
    if (!S_ISDIR(st.st_mode)) {
        replay_file(path, (size_t)st.st_size);
        return;
    }
    struct dirent **names;
    int n = scandir(path, &names, NULL, alphasort);
    if (n < 0) {
        cannot(path);
        return;
    }
    for (int i = 0; i < n; i++) {
        char *inner = malloc(strlen(path) + strlen(names[i]->d_name) + 2);
        if (inner != NULL && names[i]->d_name[0] != '.') {
            sprintf(inner, "%s/%s", path, names[i]->d_name);
            replay(inner);
        }
        free(inner);
        free(names[i]);
    }
    free(names);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        replay(argv[i]);
    /* No input at all is a mistake of the caller, not a success. */
    if (passed + failed == 0)
        failed++;
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0;
}
