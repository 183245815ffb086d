/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/protocol/recode.h"

#include <stdlib.h>

static void *array(size_t n, size_t size)
{
    void *p = calloc(n + 1, size);

    if (p == NULL)
        abort();
    return p;
}

#define SIMPLE(type, name)                         \
    static bool name(dafl_bytes b, dafl_writer *w) \
    {                                              \
        type m;                                    \
        if (dafl_get_##name(&m, b) != DAFL_OK)     \
            return false;                          \
        dafl_put_##name(w, &m);                    \
        return true;                               \
    }

SIMPLE(dafl_invite, invite)
SIMPLE(dafl_enroll, enroll)
SIMPLE(dafl_setup_ack, setup_ack)
SIMPLE(dafl_digest, ready)
SIMPLE(dafl_members, cast)
SIMPLE(dafl_upload, upload)
SIMPLE(dafl_surv, surv)
SIMPLE(dafl_signature, sign)
SIMPLE(dafl_conf, conf)
SIMPLE(dafl_result, result)
SIMPLE(dafl_hello, hello)
SIMPLE(dafl_key_msg, key_msg)
SIMPLE(dafl_open_msg, open)
SIMPLE(dafl_digest, opened)

static bool ask(dafl_bytes b, dafl_writer *w)
{
    (void)w;
    return dafl_get_ask(b) == DAFL_OK;
}

static bool end(dafl_bytes b, dafl_writer *w)
{
    dafl_end_msg m;

    if (dafl_get_end_msg(&m, b) != DAFL_OK)
        return false;
    dafl_put_end(w, &m);
    return true;
}

static bool peers(dafl_bytes b, dafl_writer *w)
{
    dafl_peers m;
    dafl_peer *list;

    if (dafl_get_peers(&m, b) != DAFL_OK)
        return false;
    list = array(m.n, sizeof *list);
    for (size_t i = 0; i < m.n; i++)
        list[i] = dafl_peers_at(&m, i);
    dafl_put_peers(w, list, m.n);
    free(list);
    return true;
}

static bool shares(dafl_bytes b, dafl_writer *w)
{
    dafl_shares m;
    dafl_addressed *list;

    if (dafl_get_shares(&m, b) != DAFL_OK)
        return false;
    list = array(m.n, sizeof *list);
    for (size_t i = 0; i < m.n; i++)
        list[i] = dafl_shares_at(&m, i);
    if (m.dealt.ptr != b.ptr || m.dealt.len + sizeof m.sig.b != b.len)
        abort();
    dafl_put_shares(w, list, m.n, m.packet_len);
    dafl_put_shares_sig(w, &m.sig);
    free(list);
    return true;
}

static bool setup(dafl_bytes b, dafl_writer *w)
{
    dafl_setup m;
    dafl_dealer *list;

    if (dafl_get_setup(&m, b) != DAFL_OK)
        return false;
    list = array(m.n, sizeof *list);
    for (size_t i = 0; i < m.n; i++) {
        dafl_bytes keys = dafl_setup_keys(&m, i);
        list[i] = dafl_setup_dealer(&m, i);
        for (size_t e = 0; e < m.n_slots; e++)
            (void)dafl_slot_keys_at(keys, e);
        if (i > 0 && dafl_setup_packet(&m, i - 1).len != m.packet_len)
            abort();
    }
    dafl_put_setup(w, &m, list);
    free(list);
    return true;
}

static bool model(dafl_bytes b, dafl_writer *w)
{
    dafl_model_msg m, left;
    dafl_segment *list;

    if (dafl_get_model(&m, b) != DAFL_OK)
        return false;
    left = m;
    list = array(m.n, sizeof *list);
    for (size_t i = 0; i < m.n; i++)
        if (dafl_model_next(&left, &list[i]) != DAFL_OK)
            abort();
    if (dafl_model_next(&left, &list[m.n]) != DAFL_ERR_ARG)
        abort();
    dafl_put_model(w, &m, list);
    free(list);
    return true;
}

static bool reveal(dafl_bytes b, dafl_writer *w)
{
    dafl_reveal m;
    dafl_revealed *list;

    if (dafl_get_reveal(&m, b) != DAFL_OK)
        return false;
    list = array(m.n, sizeof *list);
    for (size_t i = 0; i < m.n; i++)
        list[i] = dafl_reveal_at(&m, i);
    dafl_put_reveal(w, list, m.n);
    free(list);
    return true;
}

bool recode(unsigned type, dafl_bytes body, dafl_writer *w)
{
    static bool (*const by_type[DAFL_MSG_COUNT])(dafl_bytes, dafl_writer *) = {
        [DAFL_MSG_INVITE] = invite, [DAFL_MSG_ENROLL] = enroll,
        [DAFL_MSG_PEERS] = peers,   [DAFL_MSG_SHARES] = shares,
        [DAFL_MSG_SETUP] = setup,   [DAFL_MSG_SETUP_ACK] = setup_ack,
        [DAFL_MSG_MODEL] = model,   [DAFL_MSG_READY] = ready,
        [DAFL_MSG_CAST] = cast,     [DAFL_MSG_UPLOAD] = upload,
        [DAFL_MSG_END] = end,       [DAFL_MSG_SURV] = surv,
        [DAFL_MSG_SIGN] = sign,     [DAFL_MSG_CONF] = conf,
        [DAFL_MSG_REVEAL] = reveal, [DAFL_MSG_RESULT] = result,
        [DAFL_MSG_HELLO] = hello,   [DAFL_MSG_ASK] = ask,
        [DAFL_MSG_KEY] = key_msg,   [DAFL_MSG_OPEN] = open,
        [DAFL_MSG_OPENED] = opened,
    };

    return type < DAFL_MSG_COUNT && by_type[type] != NULL &&
           by_type[type](body, w);
}
