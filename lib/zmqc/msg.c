/* What decoding and encoding of a message share. The two directions are msg_decode.c and
 * msg_encode.c. */
#include <string.h>

#include "zmqc/msg.h"

void zc_msg_clear(struct zc_msg *m)
{
    memset(m, 0, offsetof(struct zc_msg, headers));
}
