/* TCP segments as bytes, see tcp_segment.h. */
#include "tunnel/tcp_segment.h"

#include "base/check.h"

enum {
    OPT_END = 0,
    OPT_NOP = 1,
    OPT_MSS = 2,
    OPT_SCALE = 3,
    OPT_SACK_OK = 4,
    OPT_SACK = 5,
    OPT_STAMP = 8,
};

static uint16_t get_u16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

static uint32_t get_u32(const uint8_t *p)
{
    return (uint32_t)get_u16(p) << 16 | get_u16(p + 2);
}

static uint8_t *put_u16(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
    return p + 2;
}

static uint8_t *put_u32(uint8_t *p, uint32_t v)
{
    return put_u16(put_u16(p, v >> 16), v);
}

/* SACK blocks; one that is empty or backwards is left out. */
static void parse_sacks(struct zc_tcp_segment *s, const uint8_t *p, size_t len)
{
    for (size_t at = 0; at < len && s->sack_count < ZC_TCP_SACKS; at += 8) {
        struct zc_tcp_range r = {get_u32(p + at), get_u32(p + at + 4)};
        if (zc_tcp_seq_lt(r.start, r.end))
            s->sacks[s->sack_count++] = r;
    }
}

/* One option whose value is len bytes at p. False: that is not a length of this option. */
static bool parse_option(struct zc_tcp_segment *s, uint8_t kind, const uint8_t *p, size_t len)
{
    switch (kind) {
    case OPT_MSS:
        if (len != 2)
            return false;
        s->mss = get_u16(p);
        return true;
    case OPT_SCALE:
        if (len != 1)
            return false;
        s->has_scale = true;
        s->scale = p[0] < ZC_TCP_SCALE_MAX ? p[0] : ZC_TCP_SCALE_MAX;
        return true;
    case OPT_SACK_OK:
        s->sack_ok = true;
        return len == 0;
    case OPT_SACK:
        if (len == 0 || len % 8 != 0)
            return false;
        parse_sacks(s, p, len);
        return true;
    case OPT_STAMP:
        if (len != 8)
            return false;
        s->has_stamp = true;
        s->stamp = get_u32(p);
        s->echo = get_u32(p + 4);
        return true;
    default:
        return true;
    }
}

static bool parse_options(struct zc_tcp_segment *s, const uint8_t *p, size_t len)
{
    size_t at = 0;
    while (at < len && p[at] != OPT_END) {
        if (p[at] == OPT_NOP) {
            at++;
            continue;
        }
        if (len - at < 2 || p[at + 1] < 2 || p[at + 1] > len - at)
            return false;
        if (!parse_option(s, p[at], p + at + 2, (size_t)p[at + 1] - 2))
            return false;
        at += p[at + 1];
    }
    return true;
}

int zc_tcp_segment_parse(const struct zc_ip6 *ip, struct zc_tcp_segment *ret_segment)
{
    const uint8_t *p = ip->payload.data;
    size_t len = ip->payload.len;
    if (ip->next != ZC_IP6_TCP || len < ZC_TCP_HEADER)
        return ZC_EBADMSG;
    size_t header = (size_t)(p[12] >> 4) * 4;
    if (header < ZC_TCP_HEADER || header > len)
        return ZC_EBADMSG;
    if (zc_ip6_checksum(&ip->src, &ip->dst, ZC_IP6_TCP, ip->payload) != 0)
        return ZC_EBADMSG;
    struct zc_tcp_segment s = {
        .src_port = get_u16(p),
        .dst_port = get_u16(p + 2),
        .seq = get_u32(p + 4),
        .ack = get_u32(p + 8),
        .flags = p[13] & 0x3f,
        .window = get_u16(p + 14),
        .data = zc_slice(p + header, len - header),
    };
    if (!parse_options(&s, p + ZC_TCP_HEADER, header - ZC_TCP_HEADER))
        return ZC_EBADMSG;
    *ret_segment = s;
    return 0;
}

/* In the order that the peers of the tunnel use. */
static uint8_t *put_syn_options(uint8_t *p, const struct zc_tcp_segment *s)
{
    if (s->mss != 0) {
        p = put_u16(p, OPT_MSS << 8 | 4);
        p = put_u16(p, s->mss);
    }
    if (s->sack_ok)
        p = put_u16(p, OPT_SACK_OK << 8 | 2);
    if (s->has_stamp) {
        /* With "SACK permitted" before it, all is aligned. */
        if (!s->sack_ok)
            p = put_u16(p, OPT_NOP << 8 | OPT_NOP);
        p = put_u16(p, OPT_STAMP << 8 | 10);
        p = put_u32(p, s->stamp);
        p = put_u32(p, s->echo);
    } else if (s->sack_ok) {
        p = put_u16(p, OPT_NOP << 8 | OPT_NOP);
    }
    if (s->has_scale) {
        p = put_u16(p, OPT_NOP << 8 | OPT_SCALE);
        p = put_u16(p, 3 << 8 | s->scale);
    }
    return p;
}

static uint8_t *put_options(uint8_t *p, const struct zc_tcp_segment *s)
{
    if ((s->flags & ZC_TCP_SYN) != 0)
        return put_syn_options(p, s);
    if (s->has_stamp) {
        p = put_u16(p, OPT_NOP << 8 | OPT_NOP);
        p = put_u16(p, OPT_STAMP << 8 | 10);
        p = put_u32(p, s->stamp);
        p = put_u32(p, s->echo);
    }
    if (s->sack_count > 0) {
        p = put_u16(p, OPT_NOP << 8 | OPT_NOP);
        p = put_u16(p, (uint32_t)(OPT_SACK << 8 | (2 + 8 * s->sack_count)));
        for (unsigned i = 0; i < s->sack_count; i++) {
            p = put_u32(p, s->sacks[i].start);
            p = put_u32(p, s->sacks[i].end);
        }
    }
    return p;
}

size_t zc_tcp_segment_header(const struct zc_tcp_segment *s)
{
    uint8_t scratch[64];
    return ZC_TCP_HEADER + (size_t)(put_options(scratch, s) - scratch);
}

size_t zc_tcp_segment_write(const struct zc_tcp_segment *s, struct zc_slice more,
                            const struct zc_ip6_addr *src, const struct zc_ip6_addr *dst,
                            uint8_t *buf, size_t cap)
{
    uint8_t *tcp = buf + ZC_IP6_HEADER;
    ZC_ASSERT(cap >= ZC_IP6_HEADER + ZC_TCP_HEADER_MAX);
    uint8_t *p = put_options(tcp + ZC_TCP_HEADER, s);
    size_t header = (size_t)(p - tcp), len = header + s->data.len + more.len;
    ZC_ASSERT(header <= ZC_TCP_HEADER_MAX && header % 4 == 0 && len <= cap - ZC_IP6_HEADER);
    put_u16(tcp, s->src_port);
    put_u16(tcp + 2, s->dst_port);
    put_u32(tcp + 4, s->seq);
    put_u32(tcp + 8, s->ack);
    tcp[12] = (uint8_t)(header / 4 << 4);
    tcp[13] = s->flags;
    put_u16(tcp + 14, s->window);
    put_u32(tcp + 16, 0); /* checksum, urgent pointer */
    if (s->data.len > 0)
        memcpy(p, s->data.data, s->data.len);
    if (more.len > 0)
        memcpy(p + s->data.len, more.data, more.len);
    zc_ip6_header(buf, src, dst, ZC_IP6_TCP, len);
    put_u16(tcp + 16, zc_ip6_checksum(src, dst, ZC_IP6_TCP, zc_slice(tcp, len)));
    return ZC_IP6_HEADER + len;
}

struct zc_tcp_segment zc_tcp_segment_reset(const struct zc_tcp_segment *s)
{
    struct zc_tcp_segment r = {.src_port = s->dst_port, .dst_port = s->src_port};
    r.flags = ZC_TCP_RST;
    if ((s->flags & ZC_TCP_ACK) != 0) {
        r.seq = s->ack;
    } else {
        r.flags |= ZC_TCP_ACK;
        r.ack = s->seq + zc_tcp_segment_len(s);
    }
    return r;
}
