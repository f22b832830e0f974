/* Payloads, byte for byte. */
#include "payload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "open.h"
#include "say.h"

/* More than any frame can carry: reading on would only fill memory. */
#define READ_MAX (2u << 20)

static int fail(const struct zc_args *args, const char *source, const char *why)
{
    char text[512], shown[256];
    zc_say_escape(shown, sizeof shown, source, strlen(source));
    snprintf(text, sizeof text, "%s: %s", shown, why);
    return zc_say_fail(1, args->verb, args->rest[0], text);
}

static int join(const struct zc_args *args, struct zc_buf *b)
{
    for (int i = 1; i < args->rest_count; i++) {
        if (i > 1 && zc_buf_append(b, " ", 1) != 0)
            return fail(args, "payload", strerror(ENOMEM));
        if (zc_buf_append(b, args->rest[i], strlen(args->rest[i])) != 0)
            return fail(args, "payload", strerror(ENOMEM));
    }
    return 0;
}

static int read_all(const struct zc_args *args, int fd, const char *source, struct zc_buf *b)
{
    for (;;) {
        if (zc_buf_reserve(b, 65536) != 0)
            return fail(args, source, strerror(ENOMEM));
        ssize_t n = read(fd, b->data + b->len, b->cap - b->len);
        if (n == 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return fail(args, source, strerror(errno));
        if (n > 0)
            b->len += (size_t)n;
        if (b->len > READ_MAX) {
            fail(args, source, "payload too large: more than 2 MiB, and nothing was sent");
            zc_say_hint("send a reference to the data, or several messages");
            return 1;
        }
    }
}

static int from_file(const struct zc_args *args, struct zc_buf *b)
{
    int fd = open(args->file, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return fail(args, args->file, strerror(errno));
    int rc = read_all(args, fd, args->file, b);
    close(fd);
    return rc;
}

bool zc_payload_stdin_closed(void)
{
    int flags = fcntl(STDIN_FILENO, F_GETFL);
    return flags < 0 || (flags & O_ACCMODE) == O_WRONLY;
}

static int from_stdin(const struct zc_args *args, struct zc_buf *b)
{
    struct stat st;
    if (zc_payload_stdin_closed())
        return fail(args, "standard input", "it is closed, and no payload was given otherwise");
    if (fstat(STDIN_FILENO, &st) == 0 && S_ISCHR(st.st_mode)) {
        if (isatty(STDIN_FILENO) == 1)
            zc_say_hint("standard input is a terminal: the payload is empty");
        return 0;
    }
    return read_all(args, STDIN_FILENO, "standard input", b);
}

int zc_payload_read(const struct zc_args *args, struct zc_buf *ret_payload)
{
    struct zc_buf b = {0};
    int rc;
    if (args->file != NULL && args->rest_count > 1)
        return zc_say_usage(args->verb, "a payload as arguments and --file: give one of them");
    if (args->rest_count > 1)
        rc = join(args, &b);
    else if (args->file != NULL)
        rc = from_file(args, &b);
    else
        rc = from_stdin(args, &b);
    if (rc != 0) {
        zc_buf_done(&b);
        return rc;
    }
    *ret_payload = b;
    return 0;
}

struct zmqcat_put_options zc_payload_options(const struct zc_args *args)
{
    return (struct zmqcat_put_options){
        .id = args->id,
        .headers = args->headers,
        .headers_count = args->headers_count,
        .delay_ms = args->delay_ms,
        .ttl_ms = args->ttl_ms,
        .if_consumer = args->if_consumer,
    };
}

int zc_payload_send(const struct zc_args *args, int64_t limit_ms,
                    int (*send)(const struct zc_args *args, struct zmqcat *bus,
                                const struct zc_buf *payload))
{
    struct zc_buf payload;
    struct zmqcat *bus = NULL;
    int status = zc_payload_read(args, &payload);
    if (status != 0)
        return status;
    status = zc_open_within(args, limit_ms, &bus);
    if (status == 0)
        status = send(args, bus, &payload);
    zmqcat_free(bus);
    zc_buf_done(&payload);
    return status;
}
