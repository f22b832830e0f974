/* IPv6 headers and the Internet checksum, see ip6.h. */
#include "tunnel/ip6.h"

enum { HOPS = 64 };

bool zc_ip6_addr_unicast(const struct zc_ip6_addr *a)
{
    static const uint8_t zeros[15];
    if (a->b[0] == 0xff) /* multicast */
        return false;
    if (a->b[0] == 0xfe && (a->b[1] & 0xc0) == 0x80) /* link-local */
        return false;
    /* :: and ::1 */
    return memcmp(a->b, zeros, sizeof(zeros)) != 0 || a->b[15] > 1;
}

int zc_ip6_parse(const uint8_t *data, size_t len, struct zc_ip6 *ret_ip)
{
    if (len < ZC_IP6_HEADER || data[0] >> 4 != 6)
        return ZC_EBADMSG;
    size_t payload = (size_t)data[4] << 8 | data[5];
    if (payload > len - ZC_IP6_HEADER)
        return ZC_EBADMSG;
    ret_ip->next = data[6];
    ret_ip->hops = data[7];
    memcpy(ret_ip->src.b, data + 8, 16);
    memcpy(ret_ip->dst.b, data + 24, 16);
    ret_ip->payload = zc_slice(data + ZC_IP6_HEADER, payload);
    return 0;
}

void zc_ip6_header(uint8_t ret_out[ZC_IP6_HEADER], const struct zc_ip6_addr *src,
                   const struct zc_ip6_addr *dst, uint8_t next, size_t len)
{
    memset(ret_out, 0, 4);
    ret_out[0] = 6 << 4;
    ret_out[4] = (uint8_t)(len >> 8);
    ret_out[5] = (uint8_t)len;
    ret_out[6] = next;
    ret_out[7] = HOPS;
    memcpy(ret_out + 8, src->b, 16);
    memcpy(ret_out + 24, dst->b, 16);
}

/* Sum of the 16-bit big-endian words of data, an odd last byte being a high one. The words are
 * added in the machine's order, four at a time: a ones' complement sum only swaps its bytes for
 * that (RFC 1071 section 2). */
static uint64_t sum_words(const uint8_t *data, size_t len)
{
    uint64_t sum = 0;
    while (len >= 8) {
        uint32_t a, b;
        memcpy(&a, data, 4);
        memcpy(&b, data + 4, 4);
        sum += (uint64_t)a + b;
        data += 8;
        len -= 8;
    }
    uint8_t tail[8] = {0};
    if (len > 0) {
        uint32_t a, b;
        memcpy(tail, data, len);
        memcpy(&a, tail, 4);
        memcpy(&b, tail + 4, 4);
        sum += (uint64_t)a + b;
    }
    return sum;
}

uint16_t zc_ip6_checksum(const struct zc_ip6_addr *src, const struct zc_ip6_addr *dst, uint8_t next,
                         struct zc_slice payload)
{
    uint8_t tail[8] = {(uint8_t)(payload.len >> 24), (uint8_t)(payload.len >> 16),
                       (uint8_t)(payload.len >> 8), (uint8_t)payload.len};
    tail[7] = next;
    uint64_t sum = sum_words(src->b, 16) + sum_words(dst->b, 16) + sum_words(tail, sizeof(tail));
    sum += sum_words(payload.data, payload.len);
    while (sum >> 16 != 0)
        sum = (sum & 0xffff) + (sum >> 16);
    uint16_t word = (uint16_t)~sum;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    word = (uint16_t)(word << 8 | word >> 8);
#endif
    return word;
}
