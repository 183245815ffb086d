/* SPDX-License-Identifier: Apache-2.0 */
/* Defences of the transport that a test can switch off, several at a time, to
 * show what they are there for. Only the copy of link_zmq.c that is linked into
 * such tests has the switches (DAFL_WEAKEN). */
#ifndef DAFL_AGENTS_LINK_WEAKEN_H
#define DAFL_AGENTS_LINK_WEAKEN_H

enum {
    LINK_WEAK_ZAP = 1,     /* the ZAP handler is not there, or dies */
    LINK_WEAK_ENFORCE = 2, /* no handler means everybody may come in */
    LINK_WEAK_USER_ID = 4, /* a connection without a name is party 0 */
    LINK_WEAK_ROUTING = 8, /* routing ids as the peers choose, and take over */
    LINK_WEAK_PARTS = 16,  /* any number of bytes in unfinished messages */
};

#ifdef DAFL_WEAKEN
#include <stdatomic.h>
extern atomic_uint link_weakened;
#define LINK_WEAK(what) ((link_weakened & LINK_WEAK_##what) != 0)
#else
#define LINK_WEAK(what) 0
#endif

#endif
