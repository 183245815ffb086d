/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/config.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "crypto/he.h"

static const uint8_t magic[4] = {'D', 'A', 'F', 'C'};

/* An upload's chunk follows its offset, see UPLOAD in protocol/messages.h. */
#define CHUNK_OVERHEAD 8

dafl_config dafl_config_default(void)
{
    dafl_config c = {
        .mode = DAFL_MODE_MASKS,
        .contract = DAFL_CONTRACT_DEFAULT,
        .want = 900,
        .tries = 2,
        .retries = 8,
        .slots = 16,
        .chunk = (uint32_t)1 << 20,
        .body_max = (uint64_t)256 << 20,
        .wait = {[DAFL_WAIT_SETUP] = 60000,
                 [DAFL_WAIT_READY] = 600000,
                 [DAFL_WAIT_UPLOAD] = 120000,
                 [DAFL_WAIT_SIGN] = 30000,
                 [DAFL_WAIT_REVEAL] = 30000},
    };
    dafl_err err;

    err = dafl_contract_derive(&c.contract, NULL);
    assert(err == DAFL_OK);
    (void)err;
    return c;
}

uint32_t dafl_config_slots(uint32_t questions)
{
    uint64_t r = questions, slots = r + (r + 3) / 4 + 4;

    return slots < DAFL_SLOTS_MAX ? (uint32_t)slots : DAFL_SLOTS_MAX;
}

size_t dafl_config_upload_bytes(const dafl_config *c, uint64_t len)
{
    size_t bytes;

    if (len < 1 || len > DAFL_BODY_MAX)
        return SIZE_MAX;
    bytes = c->mode == DAFL_MODE_SEAL ? dafl_he_bytes(len)
                                      : (size_t)len * (c->contract.w / 8);
    return bytes <= DAFL_BODY_MAX ? bytes : SIZE_MAX;
}

static dafl_err check_contract(const dafl_contract *given, dafl_why *why)
{
    dafl_contract least = *given;

    if (!given->exact)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "sums over sites need a grid: the contract must be "
                         "exact");
    DAFL_TRY(dafl_contract_derive(&least, why));
    if (given->w < least.w || given->w > 64 || given->w % 8 != 0)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "w = %u: choose 32, 40, 48, 56 or 64, for these sums "
                         "at least %u",
                         given->w, least.w);
    return DAFL_OK;
}

/* Everything that can be judged without a roster. */
static dafl_err check_ranges(const dafl_config *c, dafl_why *why)
{
    const struct {
        const char *name;
        uint64_t value, least, most;
    } ranges[] = {
        {"mode", c->mode, DAFL_MODE_NONE, DAFL_MODE_SEAL},
        {"want", c->want, 1, 1000},
        {"retries", c->retries, 1, UINT16_MAX},
        {"slots", c->slots, 1, DAFL_SLOTS_MAX},
        {"chunk", c->chunk, DAFL_CHUNK_MIN, DAFL_CHUNK_MAX},
        {"body_max", c->body_max, (uint64_t)c->chunk + CHUNK_OVERHEAD,
         DAFL_BODY_MAX},
        {"wait_setup", c->wait[DAFL_WAIT_SETUP], 1, UINT32_MAX},
        {"wait_ready", c->wait[DAFL_WAIT_READY], 1, UINT32_MAX},
        {"wait_upload", c->wait[DAFL_WAIT_UPLOAD], 1, UINT32_MAX},
        {"wait_sign", c->wait[DAFL_WAIT_SIGN], 1, UINT32_MAX},
        {"wait_reveal", c->wait[DAFL_WAIT_REVEAL], 1, UINT32_MAX},
        {"bytes of method parameters", c->method_params.len, 0, UINT32_MAX},
    };

    DAFL_TRY(check_contract(&c->contract, why));
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (ranges[i].value < ranges[i].least ||
            ranges[i].value > ranges[i].most)
            return dafl_fail(why, DAFL_ERR_INPUT,
                             "%s = %" PRIu64 ": choose %" PRIu64 " to %" PRIu64,
                             ranges[i].name, ranges[i].value, ranges[i].least,
                             ranges[i].most);
    if (memchr(c->method, '\0', sizeof c->method) == NULL ||
        !dafl_name_ok(c->method))
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "method: 1 to %d letters, digits, '-', '_' and '.'",
                         DAFL_METHOD_NAME_MAX);
    return DAFL_OK;
}

dafl_fault dafl_config_check(const dafl_config *c, const dafl_roster *roster,
                             dafl_why *why)
{
    if (check_ranges(c, why) != DAFL_OK)
        return DAFL_E_POLICY;
    if (c->mode == DAFL_MODE_SEAL && c->contract.w > DAFL_HE_W_MAX)
        return dafl_fail(why, DAFL_E_POLICY,
                         "secure_agg is 'seal': that has room for w = %d bits, "
                         "not %u; lower s, q or n_max",
                         DAFL_HE_W_MAX, c->contract.w);
    if (c->mode == DAFL_MODE_SEAL && roster->n != roster->n_clients + 2)
        return dafl_fail(why, DAFL_E_POLICY,
                         "secure_agg is 'seal': the roster needs a key holder");
    return dafl_policy_check(&c->policy, roster, why);
}

void dafl_put_config(dafl_writer *w, const dafl_config *c)
{
    size_t name_len = strnlen(c->method, sizeof c->method);

    dafl_put_fixed(w, magic, sizeof magic);
    dafl_put_u8(w, (uint8_t)c->mode);
    dafl_put_u16(w, c->policy.n_min);
    dafl_put_u16(w, c->policy.m);
    dafl_put_u16(w, c->policy.g);
    dafl_put_u16(w, c->policy.c);
    dafl_put_u16(w, c->policy.a);
    dafl_put_u8(w, (uint8_t)c->contract.s);
    dafl_put_u32(w, c->contract.q);
    dafl_put_u64(w, c->contract.n_max);
    dafl_put_u8(w, (uint8_t)c->contract.w);
    dafl_put_u16(w, c->want);
    dafl_put_u16(w, c->tries);
    dafl_put_u16(w, c->retries);
    dafl_put_u32(w, c->slots);
    dafl_put_u32(w, c->chunk);
    dafl_put_u64(w, c->body_max);
    for (size_t i = 0; i < DAFL_WAITS; i++)
        dafl_put_u32(w, c->wait[i]);
    dafl_put_u8(w, (uint8_t)name_len);
    dafl_put_fixed(w, c->method, name_len);
    dafl_put_u32(w, (uint32_t)c->method_params.len);
    dafl_put_fixed(w, c->method_params.ptr, c->method_params.len);
}

static dafl_err get_fields(dafl_reader *r, dafl_config *c)
{
    uint8_t head[sizeof magic], mode = 0, s = 0, w = 0, name_len = 0;
    uint32_t params_len = 0;

    DAFL_TRY(dafl_get_fixed(r, head, sizeof head));
    DAFL_TRY(dafl_get_u8(r, &mode));
    if (memcmp(head, magic, sizeof magic) != 0)
        return DAFL_ERR_PEER;
    c->mode = (dafl_mode)mode; /* judged with the other ranges */
    DAFL_TRY(dafl_get_u16(r, &c->policy.n_min));
    DAFL_TRY(dafl_get_u16(r, &c->policy.m));
    DAFL_TRY(dafl_get_u16(r, &c->policy.g));
    DAFL_TRY(dafl_get_u16(r, &c->policy.c));
    DAFL_TRY(dafl_get_u16(r, &c->policy.a));
    DAFL_TRY(dafl_get_u8(r, &s));
    DAFL_TRY(dafl_get_u32(r, &c->contract.q));
    DAFL_TRY(dafl_get_u64(r, &c->contract.n_max));
    DAFL_TRY(dafl_get_u8(r, &w));
    c->contract.exact = true;
    c->contract.s = s;
    c->contract.w = w;
    DAFL_TRY(dafl_get_u16(r, &c->want));
    DAFL_TRY(dafl_get_u16(r, &c->tries));
    DAFL_TRY(dafl_get_u16(r, &c->retries));
    DAFL_TRY(dafl_get_u32(r, &c->slots));
    DAFL_TRY(dafl_get_u32(r, &c->chunk));
    DAFL_TRY(dafl_get_u64(r, &c->body_max));
    for (size_t i = 0; i < DAFL_WAITS; i++)
        DAFL_TRY(dafl_get_u32(r, &c->wait[i]));
    DAFL_TRY(dafl_get_u8(r, &name_len));
    if (name_len > DAFL_METHOD_NAME_MAX)
        return DAFL_ERR_PEER;
    DAFL_TRY(dafl_get_fixed(r, c->method, name_len));
    if (strlen(c->method) != name_len) /* a zero inside */
        return DAFL_ERR_PEER;
    DAFL_TRY(dafl_get_u32(r, &params_len));
    DAFL_TRY(dafl_get_view(r, &c->method_params, params_len));
    return dafl_get_end(r);
}

dafl_err dafl_get_config(dafl_config *out, dafl_bytes bytes, dafl_why *why)
{
    dafl_reader r = dafl_read(bytes);
    dafl_config got = {0};

    if (get_fields(&r, &got) != DAFL_OK)
        return dafl_fail(why, DAFL_ERR_INPUT, "the config is malformed");
    DAFL_TRY(check_ranges(&got, why));
    *out = got;
    return DAFL_OK;
}

dafl_err dafl_config_digest(dafl_digest *out, const dafl_config *c)
{
    dafl_writer w = {0};
    dafl_err err;

    if (check_ranges(c, NULL) != DAFL_OK)
        return DAFL_ERR_ARG;
    dafl_put_config(&w, c);
    err = dafl_writer_done(&w);
    if (err == DAFL_OK)
        dafl_hash_one(out, "deepafl/config", dafl_writer_bytes(&w));
    dafl_writer_drop(&w);
    return err;
}
