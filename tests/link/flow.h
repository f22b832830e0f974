/*
 * One direction of a link: what becomes of each packet, and when it leaves. No clock, no files: the
 * caller says what time it is and moves the packets. The same seed, packets and times give the same
 * fates, however late the caller asks for what is due.
 *
 * A packet passes, in this order: the cut, the largest size, losses, the queue before the rate, the
 * delay. A duplicate follows its packet at once. One that is to be overtaken leaves later by the
 * gap; without that, packets keep their order whatever the jitter.
 *
 * Deliberately absent: losses in bursts, damaged bytes, a queue for each connection.
 */
#ifndef ZC_TESTS_LINK_FLOW_H
#define ZC_TESTS_LINK_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FLOW_NEVER INT64_MAX
/* What a direction holds at most, the queue included; what comes then is dropped. */
#define FLOW_PACKETS_MAX 65536
#define FLOW_BYTES_MAX (64u << 20)
/* Bounds of knobs. */
#define FLOW_NS_MAX (INT64_C(600) * 1000000000)
#define FLOW_BITS_MIN 1000
#define FLOW_BITS_MAX 100000000000
#define FLOW_BURST_MAX (64u << 20)

/* With chance `ppm` in a million, and every n-th (0: none of either). */
struct flow_dice {
    uint32_t ppm;
    uint32_t every;
};

struct flow_knobs {
    bool cut; /* nothing enters; what is under way arrives */
    uint32_t
        protocol; /* cut, size, losses, duplicates and order are for this IP protocol; 0: all */
    uint32_t mtu; /* larger packets are dropped; 0: none is too large */
    bool told;    /* and flow_put() says FLOW_TOO_BIG */
    uint32_t lose_next; /* so many packets more are lost */
    struct flow_dice loss, duplicate, reorder;
    int64_t reorder_ns;                  /* the gap */
    uint64_t rate_bits;                  /* a second; 0: no bound, and no queue */
    uint32_t burst;                      /* bytes that leave at once after a pause */
    uint32_t queue_packets, queue_bytes; /* that wait for the rate; 0 bytes: no such bound */
    bool drop_oldest;                    /* a full queue makes room */
    int64_t delay_ns, jitter_ns;         /* the delay is between their difference and their sum */
};

/* Packets, but where a name says bytes. */
struct flow_counts {
    uint64_t in, in_bytes, out, out_bytes;
    uint64_t cut, too_big, lost, queue_full, overflow;
    uint64_t duplicated, reordered;
    int64_t late_max_ns; /* between the time to leave and flow_take() */
};

struct flow_packet {
    struct flow_packet *next;
    int64_t at; /* when it came, then when it leaves */
    bool twice, behind;
    size_t len;
    uint8_t data[];
};

struct flow_list {
    struct flow_packet *first, *last;
    size_t count, bytes;
    int64_t latest; /* of those that are or were in it */
};

struct flow {
    struct flow_knobs knobs;
    struct flow_counts counts;
    uint64_t random[4]; /* a stream for each of loss, duplicate, reorder, jitter */
    uint32_t nth[3];    /* packets since the last n-th */
    int64_t changed_at; /* when the knobs were set */
    int64_t paid_ns;    /* until when the rate is used up */
    struct flow_list queue, line, behind;
};

enum flow_fate { FLOW_TAKEN, FLOW_DROPPED, FLOW_TOO_BIG, FLOW_NO_MEMORY };

/* No loss, no delay, no bounds; a queue of 1000 packets when there is a rate; a gap of 5 ms. */
void flow_init(struct flow *f, uint64_t seed);
void flow_done(struct flow *f);
/* Changes the knobs. What waits for the rate meets the new one; what is under way is not touched.
 */
void flow_set(struct flow *f, int64_t now, const struct flow_knobs *k);
/* A packet comes. Times never go back. */
enum flow_fate flow_put(struct flow *f, int64_t now, const uint8_t *data, size_t len);
/* The next packet that is due, for the caller to free; NULL: none yet. */
struct flow_packet *flow_take(struct flow *f, int64_t now);
/* When flow_take() is worth a call; FLOW_NEVER: not before flow_put(). */
int64_t flow_next(const struct flow *f);

#endif
