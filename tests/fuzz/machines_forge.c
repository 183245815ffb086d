/* SPDX-License-Identifier: Apache-2.0 */
/* Parties that lie, with valid signatures: messages that get beyond the first
 * checks because they are made of what the others really said. */
#include <stdlib.h>
#include <string.h>

#include "crypto/packet.h"
#include "protocol/context.h"
#include "protocol/server_state.h"
#include "tests/fuzz/machines.h"

fm_mail fm_seal(const fm_world *w, const dafl_envelope *m)
{
    dafl_writer out = {0};
    fm_mail mail = {0};

    dafl_put_envelope(&out, m, &w->rules->ids[m->sender % fm_parties(w)]);
    mail.ptr = fm_copy(out.ptr, out.len);
    mail.len = out.len;
    dafl_writer_drop(&out);
    return mail;
}

void fm_say(fm_world *w, fm_way way, uint16_t client, uint8_t type,
            uint32_t slot, dafl_bytes body)
{
    fm_mail mail =
        fm_seal(w, &(dafl_envelope){.type = type,
                                    .run = w->run,
                                    .slot = slot,
                                    .sender = way == FM_UP ? fm_peer(w, client)
                                                           : w->rules->k,
                                    .body = body});

    mail.forged = true;
    fm_post_first(w, way, client, mail);
}

static dafl_members members(const fm_world *w, uint8_t bits)
{
    dafl_members m = dafl_members_none(w->rules->k);

    for (uint16_t u = 0; u < w->rules->k; u++)
        if (bits >> u & 1)
            dafl_members_add(&m, u);
    return m;
}

/* The body of what was overheard; empty when nothing was. */
static dafl_bytes body_of(const fm_mail *mail)
{
    dafl_envelope m;

    if (mail->ptr == NULL ||
        dafl_get_envelope(&m, (dafl_bytes){mail->ptr, mail->len}, UINT32_MAX) !=
            DAFL_FAULT_NONE)
        return (dafl_bytes){NULL, 0};
    return m.body;
}

/* ---- the server ---- */

static void lie_surv(const fm_world *w, dafl_writer *body, uint8_t a,
                     uint8_t u3)
{
    dafl_surv surv = {.a = members(w, a), .u3 = members(w, u3)};
    dafl_writer digests = {0}, ends = {0};

    for (uint16_t u = 0; u < w->rules->k; u++)
        if (dafl_members_has(&surv.u3, u)) {
            dafl_put_fixed(&digests, w->heard[u].dig.b, DAFL_HASH_BYTES);
            dafl_put_fixed(&ends, w->heard[u].end_sig.b, DAFL_SIGNATURE_BYTES);
        }
    surv.digests = dafl_writer_bytes(&digests);
    surv.ends = dafl_writer_bytes(&ends);
    dafl_put_surv(body, &surv);
    dafl_writer_drop(&digests);
    dafl_writer_drop(&ends);
}

static void lie_conf(const fm_world *w, dafl_writer *body, uint8_t signers)
{
    dafl_conf conf = {.signers = members(w, signers)};
    dafl_writer sigs = {0};

    for (uint16_t u = 0; u < w->rules->k; u++)
        if (dafl_members_has(&conf.signers, u))
            dafl_put_fixed(&sigs, w->heard[u].sig.b, DAFL_SIGNATURE_BYTES);
    conf.signatures = dafl_writer_bytes(&sigs);
    dafl_put_conf(body, &conf);
    dafl_writer_drop(&sigs);
}

/* Those of a set who have enrolled. */
static void lie_peers(const fm_world *w, dafl_writer *body, uint8_t set)
{
    dafl_peer peers[FM_K_MAX];
    dafl_enroll enroll;
    uint16_t n = 0;

    for (uint16_t u = 0; u < w->rules->k; u++)
        if (set >> u & 1 &&
            dafl_get_enroll(&enroll, body_of(&w->heard[u].enroll)) == DAFL_OK)
            peers[n++] = (dafl_peer){u, enroll.ek, enroll.hk, enroll.sig};
    dafl_put_peers(body, peers, n);
}

/* What a dealer sealed for a client; zeros when there is no such packet. */
static void put_packet(const fm_world *w, dafl_writer *out, uint16_t from,
                       uint16_t to, size_t len)
{
    dafl_shares shares;

    if (dafl_get_shares(&shares, body_of(&w->heard[from].shares)) == DAFL_OK)
        for (size_t i = 0; i < shares.n; i++)
            if (dafl_shares_at(&shares, i).to == to &&
                shares.packet_len == len) {
                dafl_put_fixed(out, dafl_shares_at(&shares, i).packet.ptr, len);
                return;
            }
    for (size_t i = 0; i < len; i++)
        dafl_put_u8(out, 0);
}

/* Those of a set who have dealt; from some the packet is missing. */
static void lie_setup(const fm_world *w, dafl_writer *body, uint16_t to,
                      uint8_t set, uint8_t without)
{
    size_t len = w->rules->config.slots * 64 + DAFL_PACKET_OVERHEAD;
    dafl_setup setup = {.n_slots = w->rules->config.slots,
                        .packet_len = (uint32_t)len};
    dafl_writer packets = {0}, keys = {0};
    dafl_dealer dealers[FM_K_MAX];

    for (uint16_t u = 0; u < w->rules->k; u++) {
        dafl_enroll enroll;
        dafl_shares shares;
        dafl_digest h;
        if (!(set >> u & 1) ||
            dafl_get_enroll(&enroll, body_of(&w->heard[u].enroll)) != DAFL_OK ||
            dafl_get_shares(&shares, body_of(&w->heard[u].shares)) != DAFL_OK)
            continue;
        dafl_context_shares(&h, shares.dealt);
        dealers[setup.n++] = (dafl_dealer){u, h, shares.sig};
        if (u != to)
            put_packet(w, &packets, u, without >> u & 1 ? u : to, len);
        dafl_put_fixed(&keys, enroll.keys.ptr, enroll.keys.len);
    }
    setup.packets = dafl_writer_bytes(&packets);
    setup.keys = dafl_writer_bytes(&keys);
    if (setup.n > 0)
        dafl_put_setup(body, &setup, dealers);
    dafl_writer_drop(&packets);
    dafl_writer_drop(&keys);
}

static void lie_invite(const fm_world *w, dafl_writer *body, uint8_t enrolment,
                       uint8_t other)
{
    dafl_invite invite = {.enrolment = enrolment};

    if (dafl_roster_digest(&invite.roster, &w->rules->roster) != DAFL_OK ||
        dafl_config_digest(&invite.config, &w->rules->config) != DAFL_OK)
        abort();
    if (other == 1)
        invite.config.b[0] ^= 1;
    dafl_put_invite(body, &invite);
}

static void lie_model(dafl_writer *body, uint8_t question, uint8_t shape)
{
    dafl_segment segments[8];
    uint8_t chain[8] = {shape};
    uint16_t n = 0;

    for (uint32_t q = shape >> 6; q <= question % 4 && n < 8; q++)
        segments[n++] = (dafl_segment){.query = q,
                                       .kind = 3,
                                       .layer = (uint16_t)q,
                                       .slot = q == 0 ? 0 : shape & 7,
                                       .bytes = {chain, sizeof chain}};
    dafl_put_model(body,
                   &(dafl_model_msg){
                       .query = question % 4, .rank = shape >> 3 & 1, .n = n},
                   segments);
}

void fm_server_lies(fm_world *w, uint16_t to, uint8_t kind, uint32_t slot,
                    uint8_t a, uint8_t b)
{
    static const uint8_t types[] = {
        DAFL_MSG_CAST,  DAFL_MSG_SURV,   DAFL_MSG_CONF,   DAFL_MSG_PEERS,
        DAFL_MSG_SETUP, DAFL_MSG_INVITE, DAFL_MSG_RESULT, DAFL_MSG_MODEL};
    uint8_t type = types[kind % sizeof types];
    dafl_members set = members(w, a);
    dafl_writer body = {0};

    if (type == DAFL_MSG_CAST)
        dafl_put_cast(&body, &set);
    else if (type == DAFL_MSG_SURV)
        lie_surv(w, &body, a, b);
    else if (type == DAFL_MSG_CONF)
        lie_conf(w, &body, a);
    else if (type == DAFL_MSG_PEERS)
        lie_peers(w, &body, a);
    else if (type == DAFL_MSG_SETUP)
        lie_setup(w, &body, to, a, b);
    else if (type == DAFL_MSG_INVITE)
        lie_invite(w, &body, a, b);
    else if (type == DAFL_MSG_RESULT)
        dafl_put_result(&body, &(dafl_result){.fault = a});
    else
        lie_model(&body, a, b);
    fm_say(w, FM_DOWN, to, type, slot, dafl_writer_bytes(&body));
    dafl_writer_drop(&body);
}

/* ---- a client ---- */

/* The one that the server is in. */
static uint32_t enrolment_now(fm_world *w)
{
    const fm_party *server = fm_server(w);

    return server->server == NULL ? 0 : server->server->enrolment;
}

/* Keys that should not be: zeros, one that stands twice, or another's. */
static void cheat_enroll(fm_world *w, uint16_t from, uint8_t how, uint8_t at)
{
    uint32_t slots = w->rules->config.slots;
    const dafl_secret_identity *id = &w->rules->ids[from];
    dafl_enroll enroll = {.n_slots = slots}, other;
    dafl_writer keys = {0}, body = {0};
    dafl_digest d;

    for (uint32_t e = 0; e < slots; e++) {
        dafl_slot_keys k = {{{9}}, {{1}}};
        k.pk.b[1] = (uint8_t)(how == 1 ? 1 : e + 1);
        if (how == 0 && e == at % slots)
            memset(k.pk.b, 0, sizeof k.pk.b);
        if (how == 2 &&
            dafl_get_enroll(
                &other, body_of(&w->heard[at % w->rules->k].enroll)) == DAFL_OK)
            k = dafl_slot_keys_at(other.keys, e);
        dafl_put_fixed(&keys, k.pk.b, sizeof k.pk.b);
        dafl_put_fixed(&keys, k.cb.b, sizeof k.cb.b);
    }
    enroll.keys = dafl_writer_bytes(&keys);
    enroll.ek.b[0] = how == 3 ? 0 : 9;
    dafl_context_keys(&enroll.hk, enroll.keys);
    dafl_context_enroll(&d, &w->run, enrolment_now(w), from, &enroll.ek,
                        &enroll.hk);
    dafl_sign(&enroll.sig, &d, id);
    dafl_put_enroll(&body, &enroll);
    fm_say(w, FM_UP, from, DAFL_MSG_ENROLL, 0, dafl_writer_bytes(&body));
    dafl_writer_drop(&body);
    dafl_writer_drop(&keys);
}

/* Packets that nobody can open, for the others of a set. */
static void cheat_shares(fm_world *w, uint16_t from, uint8_t to, uint8_t fill)
{
    size_t len = w->rules->config.slots * 64 + DAFL_PACKET_OVERHEAD;
    uint8_t *packet = fm_alloc(len, 1);
    dafl_addressed packets[FM_K_MAX];
    dafl_writer body = {0};
    dafl_signature sig;
    dafl_digest h, dealt;
    uint16_t n = 0;

    memset(packet, fill, len);
    for (uint16_t u = 0; u < w->rules->k; u++)
        if (u != from && to >> u & 1)
            packets[n++] = (dafl_addressed){u, {packet, len}};
    dafl_put_shares(&body, packets, n, (uint32_t)len);
    dafl_context_shares(&h, dafl_writer_bytes(&body));
    dafl_context_dealt(&dealt, &w->run, enrolment_now(w), from, &h);
    dafl_sign(&sig, &dealt, &w->rules->ids[from]);
    dafl_put_shares_sig(&body, &sig);
    fm_say(w, FM_UP, from, DAFL_MSG_SHARES, 0, dafl_writer_bytes(&body));
    dafl_writer_drop(&body);
    free(packet);
}

static void cheat_ack(fm_world *w, uint16_t from, uint8_t failed)
{
    dafl_setup_ack ack;
    dafl_writer body = {0};

    for (uint16_t u = 0; u < w->rules->k; u++) {
        dafl_bytes real = body_of(&w->heard[u].ack);
        if (dafl_get_setup_ack(&ack, real) == DAFL_OK) {
            ack.failed = members(w, failed);
            dafl_put_setup_ack(&body, &ack);
            fm_say(w, FM_UP, from, DAFL_MSG_SETUP_ACK, 0,
                   dafl_writer_bytes(&body));
            break;
        }
    }
    dafl_writer_drop(&body);
}

/* Any numbers, with a digest and a signature that fit the server's newest cast.
 */
static void cheat_upload(fm_world *w, uint16_t from, uint8_t len, uint8_t fill)
{
    const fm_party *s = fm_server(w);
    uint32_t slot = s->server == NULL ? 0 : dafl_server_slot(s->server);
    uint8_t bytes[256];
    dafl_writer body = {0};
    dafl_end_msg end = {.len = len};
    dafl_digest said;

    memset(bytes, fill, sizeof bytes);
    dafl_context_upload(&end.dig, &w->ctx2, from, (dafl_bytes){bytes, len});
    dafl_context_end(&said, &w->ctx2, from, &end.dig);
    dafl_sign(&end.sig, &said, &w->rules->ids[from]);
    dafl_put_end(&body, &end);
    fm_say(w, FM_UP, from, DAFL_MSG_END, slot, dafl_writer_bytes(&body));
    dafl_writer_clear(&body);
    dafl_put_upload(&body, &(dafl_upload){0, {bytes, len}});
    fm_say(w, FM_UP, from, DAFL_MSG_UPLOAD, slot, dafl_writer_bytes(&body));
    dafl_writer_drop(&body);
}

/* Shares of everybody in a set, of one kind or the other. */
static void cheat_reveal(fm_world *w, uint16_t from, uint8_t set, uint8_t kinds)
{
    const fm_party *s = fm_server(w);
    uint32_t slot = s->server == NULL ? 0 : dafl_server_slot(s->server);
    dafl_revealed items[FM_K_MAX];
    dafl_writer body = {0};
    uint16_t n = 0;

    memset(items, 0, sizeof items);
    for (uint16_t u = 0; u < w->rules->k; u++)
        if (set >> u & 1) {
            items[n].dealer = u;
            items[n].kind = kinds >> u & 1 ? DAFL_REVEAL_SK : DAFL_REVEAL_B;
            items[n++].share.b[0] = kinds;
        }
    dafl_put_reveal(&body, items, n);
    fm_say(w, FM_UP, from, DAFL_MSG_REVEAL, slot, dafl_writer_bytes(&body));
    dafl_writer_drop(&body);
}

void fm_client_cheats(fm_world *w, uint16_t from, uint8_t kind, uint8_t a,
                      uint8_t b)
{
    switch (kind % 5) {
    case 0:
        cheat_enroll(w, from, a % 4, b);
        break;
    case 1:
        cheat_shares(w, from, a, b);
        break;
    case 2:
        cheat_ack(w, from, a);
        break;
    case 3:
        cheat_upload(w, from, a, b);
        break;
    default:
        cheat_reveal(w, from, a, b);
        break;
    }
}
