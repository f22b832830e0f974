/* keygen and nodekey: key files, off line. */
#include "host/keyfile.h"

#include <stdio.h>

#include <sodium.h>

#include "out.h"
#include "say.h"
#include "verbs.h"

#define CONFIG_STATUS 78

static int print_node_key(const struct zc_args *args, const struct zc_keyfile *keys)
{
    char text[ZC_SECRET_TEXT_MAX];
    zc_secret_encode(ZC_SECRET_NODE_KEY, keys->node_key.b, text);
    if (puts(text) >= 0 && fflush(stdout) == 0)
        return 0;
    return zc_say_fail(1, args->verb, NULL, "standard output cannot be written");
}

int zc_key_gen(const struct zc_args *args)
{
    char why[ZC_KEYFILE_WHY_MAX];
    struct zc_keyfile keys;
    if (args->hub && args->client)
        return zc_say_usage(args->verb, "--hub or --client, not both");
    if (zc_out_usable() != 0)
        return 1;
    if (sodium_init() < 0)
        return zc_say_fail(1, args->verb, NULL, "the cryptographic library cannot be started");
    zc_keyfile_generate(args->hub ? ZC_KEYFILE_HUB : ZC_KEYFILE_SPOKE, &keys);
    int err = zc_keyfile_save(args->rest[0], &keys, false, why);
    int status =
        err != 0 ? zc_say_fail(1, args->verb, args->rest[0], why) : print_node_key(args, &keys);
    zc_keyfile_done(&keys);
    return status;
}

int zc_key_node(const struct zc_args *args)
{
    char why[ZC_KEYFILE_WHY_MAX];
    struct zc_keyfile keys;
    int err = zc_keyfile_load(args->rest[0], &keys, why);
    if (err != 0)
        return zc_say_fail(err == ZC_ENOENT ? 1 : CONFIG_STATUS, args->verb, args->rest[0], why);
    int status = print_node_key(args, &keys);
    zc_keyfile_done(&keys);
    return status;
}
