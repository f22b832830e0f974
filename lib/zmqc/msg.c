/* What decoding and encoding of a message share. The two directions are msg_decode.c and
 * msg_encode.c. */
#include <string.h>

#include "zmqc/msg.h"

#define MSG_ZERO(m, from, to) memset((char *)(m) + (from), 0, (to) - (from))

void zc_msg_clear(struct zc_msg *m)
{
    /* The arrays are 40 KiB; their counts say what is valid in them. */
    MSG_ZERO(m, 0, offsetof(struct zc_msg, headers));
    MSG_ZERO(m, offsetof(struct zc_msg, headers_count), offsetof(struct zc_msg, failed));
    MSG_ZERO(m, offsetof(struct zc_msg, failed_count), offsetof(struct zc_msg, deliveries));
    MSG_ZERO(m, offsetof(struct zc_msg, deliveries_count), sizeof(*m));
}
