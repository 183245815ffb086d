/* SPDX-License-Identifier: Apache-2.0 */
/* The messages before the first slot, both directions. */
#include "protocol/messages.h"

#define PEER_BYTES (2 + 32 + 32 + 64)
#define DEALER_BYTES (2 + 32 + 64)

/* Item i of a list of equal items. */
static dafl_reader item(dafl_bytes list, size_t i, size_t size)
{
    return dafl_read((dafl_bytes){list.ptr + i * size, size});
}

/* The client number at the start of each item ascends strictly. */
static dafl_err check_ascending(dafl_bytes list, size_t n, size_t size)
{
    uint16_t last = 0, now = 0;

    for (size_t i = 0; i < n; i++) {
        dafl_reader r = item(list, i, size);
        DAFL_TRY(dafl_get_u16(&r, &now));
        if (now >= DAFL_CLIENTS_MAX || (i > 0 && now <= last))
            return DAFL_ERR_PEER;
        last = now;
    }
    return DAFL_OK;
}

void dafl_put_invite(dafl_writer *w, const dafl_invite *m)
{
    dafl_put_u32(w, m->enrolment);
    dafl_put_fixed(w, m->roster.b, sizeof m->roster.b);
    dafl_put_fixed(w, m->config.b, sizeof m->config.b);
}

dafl_err dafl_get_invite(dafl_invite *m, dafl_bytes body)
{
    dafl_reader r = dafl_read(body);
    dafl_invite got;

    DAFL_TRY(dafl_get_u32(&r, &got.enrolment));
    DAFL_TRY(dafl_get_fixed(&r, got.roster.b, sizeof got.roster.b));
    DAFL_TRY(dafl_get_fixed(&r, got.config.b, sizeof got.config.b));
    DAFL_TRY(dafl_get_end(&r));
    *m = got;
    return DAFL_OK;
}

dafl_slot_keys dafl_slot_keys_at(dafl_bytes list, size_t i)
{
    const uint8_t *at = list.ptr + i * DAFL_SLOT_KEYS_BYTES;
    dafl_slot_keys k;

    for (size_t j = 0; j < 32; j++) {
        k.pk.b[j] = at[j];
        k.cb.b[j] = at[32 + j];
    }
    return k;
}

void dafl_put_enroll(dafl_writer *w, const dafl_enroll *m)
{
    dafl_put_fixed(w, m->ek.b, sizeof m->ek.b);
    dafl_put_fixed(w, m->hk.b, sizeof m->hk.b);
    dafl_put_fixed(w, m->sig.b, sizeof m->sig.b);
    dafl_put_u32(w, m->n_slots);
    dafl_put_fixed(w, m->keys.ptr, m->keys.len);
}

dafl_err dafl_get_enroll(dafl_enroll *m, dafl_bytes body)
{
    dafl_reader r = dafl_read(body);
    dafl_enroll got;

    DAFL_TRY(dafl_get_fixed(&r, got.ek.b, sizeof got.ek.b));
    DAFL_TRY(dafl_get_fixed(&r, got.hk.b, sizeof got.hk.b));
    DAFL_TRY(dafl_get_fixed(&r, got.sig.b, sizeof got.sig.b));
    DAFL_TRY(dafl_get_u32(&r, &got.n_slots));
    DAFL_TRY(dafl_get_items(&r, &got.keys, got.n_slots, DAFL_SLOT_KEYS_BYTES));
    DAFL_TRY(dafl_get_end(&r));
    *m = got;
    return DAFL_OK;
}

void dafl_put_peers(dafl_writer *w, const dafl_peer *peers, uint16_t n)
{
    dafl_put_u16(w, n);
    for (size_t i = 0; i < n; i++) {
        dafl_put_u16(w, peers[i].client);
        dafl_put_fixed(w, peers[i].ek.b, sizeof peers[i].ek.b);
        dafl_put_fixed(w, peers[i].hk.b, sizeof peers[i].hk.b);
        dafl_put_fixed(w, peers[i].sig.b, sizeof peers[i].sig.b);
    }
}

dafl_err dafl_get_peers(dafl_peers *m, dafl_bytes body)
{
    dafl_reader r = dafl_read(body);
    dafl_peers got;

    DAFL_TRY(dafl_get_u16(&r, &got.n));
    DAFL_TRY(dafl_get_items(&r, &got.list, got.n, PEER_BYTES));
    DAFL_TRY(dafl_get_end(&r));
    DAFL_TRY(check_ascending(got.list, got.n, PEER_BYTES));
    *m = got;
    return DAFL_OK;
}

/* The accessors below read what a decoder has checked, so nothing can fail. */

dafl_peer dafl_peers_at(const dafl_peers *m, size_t i)
{
    dafl_reader r = item(m->list, i, PEER_BYTES);
    dafl_peer p = {0};

    if (dafl_get_u16(&r, &p.client) != DAFL_OK ||
        dafl_get_fixed(&r, p.ek.b, sizeof p.ek.b) != DAFL_OK ||
        dafl_get_fixed(&r, p.hk.b, sizeof p.hk.b) != DAFL_OK ||
        dafl_get_fixed(&r, p.sig.b, sizeof p.sig.b) != DAFL_OK)
        return (dafl_peer){0};
    return p;
}

void dafl_put_shares(dafl_writer *w, const dafl_addressed *packets, uint16_t n,
                     uint32_t packet_len)
{
    dafl_put_u16(w, n);
    dafl_put_u32(w, packet_len);
    for (size_t i = 0; i < n; i++) {
        dafl_put_u16(w, packets[i].to);
        dafl_put_fixed(w, packets[i].packet.ptr, packet_len);
    }
}

void dafl_put_shares_sig(dafl_writer *w, const dafl_signature *sig)
{
    dafl_put_fixed(w, sig->b, sizeof sig->b);
}

dafl_err dafl_get_shares(dafl_shares *m, dafl_bytes body)
{
    dafl_reader r = dafl_read(body);
    dafl_shares got;

    DAFL_TRY(dafl_get_u16(&r, &got.n));
    DAFL_TRY(dafl_get_u32(&r, &got.packet_len));
    DAFL_TRY(dafl_get_items(&r, &got.list, got.n, 2 + (size_t)got.packet_len));
    got.dealt = (dafl_bytes){body.ptr, body.len - r.left};
    DAFL_TRY(dafl_get_fixed(&r, got.sig.b, sizeof got.sig.b));
    DAFL_TRY(dafl_get_end(&r));
    DAFL_TRY(check_ascending(got.list, got.n, 2 + (size_t)got.packet_len));
    *m = got;
    return DAFL_OK;
}

dafl_addressed dafl_shares_at(const dafl_shares *m, size_t i)
{
    dafl_reader r = item(m->list, i, 2 + (size_t)m->packet_len);
    dafl_addressed a = {0};

    if (dafl_get_u16(&r, &a.to) != DAFL_OK ||
        dafl_get_view(&r, &a.packet, m->packet_len) != DAFL_OK)
        return (dafl_addressed){0};
    return a;
}

void dafl_put_setup(dafl_writer *w, const dafl_setup *m,
                    const dafl_dealer *dealers)
{
    dafl_put_u16(w, m->n);
    dafl_put_u32(w, m->n_slots);
    dafl_put_u32(w, m->packet_len);
    for (size_t i = 0; i < m->n; i++) {
        dafl_put_u16(w, dealers[i].client);
        dafl_put_fixed(w, dealers[i].h_shares.b, sizeof dealers[i].h_shares.b);
        dafl_put_fixed(w, dealers[i].sig.b, sizeof dealers[i].sig.b);
    }
    dafl_put_fixed(w, m->packets.ptr, m->packets.len);
    dafl_put_fixed(w, m->keys.ptr, m->keys.len);
}

dafl_err dafl_get_setup(dafl_setup *m, dafl_bytes body)
{
    dafl_reader r = dafl_read(body);
    dafl_setup got;

    DAFL_TRY(dafl_get_u16(&r, &got.n));
    DAFL_TRY(dafl_get_u32(&r, &got.n_slots));
    DAFL_TRY(dafl_get_u32(&r, &got.packet_len));
    if (got.n < 1)
        return DAFL_ERR_PEER;
    DAFL_TRY(dafl_get_items(&r, &got.dealers, got.n, DEALER_BYTES));
    DAFL_TRY(check_ascending(got.dealers, got.n, DEALER_BYTES));
    DAFL_TRY(dafl_get_items(&r, &got.packets, got.n - 1u, got.packet_len));
    DAFL_TRY(dafl_get_items(&r, &got.keys, (uint64_t)got.n * got.n_slots,
                            DAFL_SLOT_KEYS_BYTES));
    DAFL_TRY(dafl_get_end(&r));
    *m = got;
    return DAFL_OK;
}

dafl_dealer dafl_setup_dealer(const dafl_setup *m, size_t i)
{
    dafl_reader r = item(m->dealers, i, DEALER_BYTES);
    dafl_dealer d = {0};

    if (dafl_get_u16(&r, &d.client) != DAFL_OK ||
        dafl_get_fixed(&r, d.h_shares.b, sizeof d.h_shares.b) != DAFL_OK ||
        dafl_get_fixed(&r, d.sig.b, sizeof d.sig.b) != DAFL_OK)
        return (dafl_dealer){0};
    return d;
}

dafl_bytes dafl_setup_packet(const dafl_setup *m, size_t i)
{
    return (dafl_bytes){m->packets.ptr + i * m->packet_len, m->packet_len};
}

dafl_bytes dafl_setup_keys(const dafl_setup *m, size_t i)
{
    size_t len = (size_t)m->n_slots * DAFL_SLOT_KEYS_BYTES;

    return (dafl_bytes){m->keys.ptr + i * len, len};
}

void dafl_put_setup_ack(dafl_writer *w, const dafl_setup_ack *m)
{
    dafl_put_fixed(w, m->h_setup.b, sizeof m->h_setup.b);
    dafl_put_members(w, &m->failed);
}

dafl_err dafl_get_setup_ack(dafl_setup_ack *m, dafl_bytes body)
{
    dafl_reader r = dafl_read(body);
    dafl_setup_ack got;

    DAFL_TRY(dafl_get_fixed(&r, got.h_setup.b, sizeof got.h_setup.b));
    DAFL_TRY(dafl_get_members(&r, &got.failed));
    DAFL_TRY(dafl_get_end(&r));
    *m = got;
    return DAFL_OK;
}
