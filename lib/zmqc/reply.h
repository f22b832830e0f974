/*
 * Frames on their way to a session: at once, or in a lane behind what waits for the disk.
 */
#ifndef ZC_ZMQC_REPLY_H
#define ZC_ZMQC_REPLY_H

#include "zmqc/broker.h"

#define ZC_REPLY_PUB_FAILED                                                                        \
    "storage: not in all mailboxes that are bound to the topic: see zmqcat status"

/* Encodes and writes m, overtaking both lanes. */
void zc_reply_now(struct zc_broker *b, struct zc_session *s, const struct zc_msg *m);
/* Encodes m and writes it once ticket is synced and all earlier replies are out. */
void zc_reply_send(struct zc_broker *b, struct zc_session *s, const struct zc_msg *m,
                   uint64_t ticket);
/* err with that code and text, in order. */
void zc_reply_err(struct zc_broker *b, struct zc_session *s, struct zc_slice id, const char *code,
                  const char *text);
/* err that answers a waiting take, reserve or ready: in the lane of messages. */
void zc_reply_gift_err(struct zc_broker *b, struct zc_session *s, struct zc_slice id,
                       const char *code, const char *text);
/* ok{id,name} in order after ticket. */
void zc_reply_ok(struct zc_broker *b, struct zc_session *s, struct zc_slice id,
                 struct zc_slice name, uint64_t ticket);
/* ok{id,name,subs}, likewise, to a publication: when the ticket fails, some of it is done all the
 * same. */
void zc_reply_ok_pub(struct zc_broker *b, struct zc_session *s, struct zc_slice id,
                     struct zc_slice name, uint32_t subs, uint64_t ticket);
/* err for a negative zc_err of the journal. */
void zc_reply_storage(struct zc_broker *b, struct zc_session *s, struct zc_slice id, int err);
/* A publication: the frame, or its part of the shared bytes. When the session's buffer is full it
 * is dropped and counted; while its replay is not over, the replay brings the last value instead.
 */
void zc_reply_publish(struct zc_broker *b, const struct zc_match *match, struct zc_block *frame,
                      const struct zc_fan_part *part);
/* Writes an encoded frame now. */
void zc_reply_write(struct zc_broker *b, struct zc_session *s, struct zc_block *frame, bool sub);
/* Encodes for s, with a trace line; NULL: the session was ended. */
struct zc_block *zc_reply_encode(struct zc_broker *b, struct zc_session *s, const struct zc_msg *m);

/* Puts h at the end of its lane; then call zc_reply_release. */
struct zc_held *zc_reply_held_new(struct zc_slice id);
void zc_reply_hold(struct zc_broker *b, struct zc_session *s, struct zc_held *h);
/* Writes what is ready at the heads of both lanes. */
void zc_reply_release(struct zc_broker *b, struct zc_session *s);
/* Every lane of every session. */
void zc_reply_release_all(struct zc_broker *b);
/* Held frames whose ticket is above `ticket` turn into errors. */
void zc_reply_fail(struct zc_broker *b, uint64_t ticket);
/* Take h's bytes into account, and out of it again while what it holds is exchanged. */
void zc_reply_charge(struct zc_session *s, struct zc_held *h);
void zc_reply_discharge(struct zc_session *s, struct zc_held *h);
void zc_reply_held_free(struct zc_session *s, struct zc_held *h);
/* Fills a subscriber's buffer with last values, as far as its reader has room. */
void zc_reply_replay(struct zc_broker *b, struct zc_session *s);
/* More output, or more that will become output, than the session's bound, or than its share while
 * that of all sessions is too much. */
bool zc_reply_over_bound(const struct zc_broker *b, const struct zc_session *s);
/* Half of that or less. */
bool zc_reply_has_room(const struct zc_broker *b, const struct zc_session *s);

#endif
