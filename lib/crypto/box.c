/* crypto_box over libsodium: see box.h. */
#include "crypto/box.h"

#include <sodium.h>

#include "base/check.h"

_Static_assert(crypto_box_BEFORENMBYTES == ZC_SECRET_BYTES, "key size");
_Static_assert(crypto_box_MACBYTES == ZC_BOX_TAG, "tag size");
_Static_assert(crypto_box_NONCEBYTES == ZC_BOX_NONCE, "nonce size");

int zc_box_shared(const struct zc_secret *private, const struct zc_key *public,
                  struct zc_secret *ret_shared)
{
    struct zc_secret shared;
    int err = crypto_box_beforenm(shared.b, public->b, private->b);
    if (err == 0)
        *ret_shared = shared;
    zc_secret_done(&shared);
    return err == 0 ? 0 : ZC_EBADMSG;
}

void zc_box_seal(const struct zc_secret *shared, const uint8_t nonce[ZC_BOX_NONCE],
                 struct zc_slice text, uint8_t *ret_box)
{
    int err = crypto_box_easy_afternm(ret_box, text.data, text.len, nonce, shared->b);
    ZC_ASSERT(err == 0);
}

int zc_box_open(const struct zc_secret *shared, const uint8_t nonce[ZC_BOX_NONCE],
                struct zc_slice box, uint8_t *ret_text)
{
    /* libsodium opens nothing before the tag proved right. */
    if (box.len < ZC_BOX_TAG ||
        crypto_box_open_easy_afternm(ret_text, box.data, box.len, nonce, shared->b) != 0)
        return ZC_EBADMSG;
    return 0;
}
