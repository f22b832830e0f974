/* What decoding and encoding of a message share. The two directions are msg_decode.c and
 * msg_encode.c. */
#include <string.h>

#include "zmqc/msg.h"

/* In pieces: for a size that it knows gcc writes `rep stos`, whose start alone costs more. */
void zc_msg_clear(struct zc_msg *m)
{
    enum { SIZE = offsetof(struct zc_msg, headers), PIECE = 64 };
    for (size_t i = 0; i < SIZE / PIECE; i++)
        memset((char *)m + i * PIECE, 0, PIECE);
    memset((char *)m + SIZE / PIECE * PIECE, 0, SIZE % PIECE);
}
