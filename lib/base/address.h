/*
 * Where a bus listens, as people write it: unix:///path, /abs/path, ./rel/path, tcp://host:port,
 * host:port, [::1]:port. Only the text is parsed; nothing is looked up.
 */
#ifndef ZC_BASE_ADDRESS_H
#define ZC_BASE_ADDRESS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define ZC_ADDRESS_PATH_MAX 107 /* bytes: what sockaddr_un holds with its NUL */
#define ZC_ADDRESS_HOST_MAX 253
#define ZC_ADDRESS_TEXT_MAX (ZC_ADDRESS_HOST_MAX + 16)
#define ZC_ADDRESS_WHY_MAX 160

enum zc_address_kind { ZC_ADDRESS_UNIX, ZC_ADDRESS_TCP };

struct zc_address {
    enum zc_address_kind kind;
    char path[ZC_ADDRESS_PATH_MAX + 1];
    char host[ZC_ADDRESS_HOST_MAX + 1]; /* without brackets */
    uint16_t port;                      /* 0: any free one, when listening */
};

/* Parses text. ZC_EINVAL: why (NUL-terminated, one line, without the text itself) says what is
 * wrong and what is wanted; ret_address is untouched. */
ZC_MUST_CHECK int zc_address_parse(const char *text, struct zc_address *ret_address,
                                   char ret_why[ZC_ADDRESS_WHY_MAX]);
/* The canonical text: unix://PATH or tcp://HOST:PORT. */
void zc_address_text(const struct zc_address *a, char ret_text[ZC_ADDRESS_TEXT_MAX]);

#endif
