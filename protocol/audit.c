/* SPDX-License-Identifier: Apache-2.0 */
/* Writing the audit log. */
#include "protocol/audit.h"

#include <string.h>

#include "protocol/audit_fields.h"

/* clang-format off */
#define PEER {"peer", DAFL_FIELD_PEER, 0}
const dafl_field dafl_audit_fields[DAFL_EVENTS][DAFL_FIELDS_MAX] = {
    [DAFL_EVENT_START] = {{"boot", DAFL_FIELD_NUMBER, 0},
                          {"config", DAFL_FIELD_HASH, 32},
                          {"name", DAFL_FIELD_NAME, 64},
                          {"roster", DAFL_FIELD_HASH, 0}},
    [DAFL_EVENT_INVITE] = {{"enrolment", DAFL_FIELD_NUMBER, 0}, PEER},
    [DAFL_EVENT_ENROLL] = {{"enrolment", DAFL_FIELD_NUMBER, 0},
                           {"hk", DAFL_FIELD_DIGEST, 0}, PEER},
    [DAFL_EVENT_SETUP] = {{"enrolment", DAFL_FIELD_NUMBER, 0},
                          {"h_setup", DAFL_FIELD_DIGEST, 0}, PEER,
                          {"t", DAFL_FIELD_U16, 0},
                          {"u0", DAFL_FIELD_MEMBERS, 2},
                          {"u1", DAFL_FIELD_SET, 0}},
    [DAFL_EVENT_MODEL] = {{"chosen", DAFL_FIELD_SET, 0},
                          {"h_setup", DAFL_FIELD_HASH, 13},
                          {"he", DAFL_FIELD_HASH, 45},
                          {"len", DAFL_FIELD_U64, 4},
                          {"model", DAFL_FIELD_DIGEST, 0}, PEER,
                          {"question", DAFL_FIELD_NUMBER, 0},
                          {"rank", DAFL_FIELD_U32, 0},
                          {"w", DAFL_FIELD_U8, 12}},
    [DAFL_EVENT_READY] = {{"ctx", DAFL_FIELD_DIGEST, 0}, PEER},
    [DAFL_EVENT_CAST] = {{"a", DAFL_FIELD_SET, 0},
                         {"ctx2", DAFL_FIELD_DIGEST, 0}, PEER},
    [DAFL_EVENT_UPLOAD] = {{"dig", DAFL_FIELD_DIGEST, 0}, PEER},
    [DAFL_EVENT_SURV] = {{"digests", DAFL_FIELD_HASHES, 0}, PEER,
                         {"stmt", DAFL_FIELD_DIGEST, 0},
                         {"u3", DAFL_FIELD_SET, 0}},
    [DAFL_EVENT_SIGN] = {{"digests", DAFL_FIELD_HASHES, 64}, PEER,
                         {"signature", DAFL_FIELD_SIG, 0},
                         {"stmt", DAFL_FIELD_DIGEST, 0},
                         {"u3", DAFL_FIELD_SET, 0}},
    [DAFL_EVENT_CONF] = {{"fault", DAFL_FIELD_FAULT, 0}, PEER,
                         {"signatures", DAFL_FIELD_SIGS, 0},
                         {"signers", DAFL_FIELD_SET, 0},
                         {"stmt", DAFL_FIELD_DIGEST, 0}},
    [DAFL_EVENT_REVEAL] = {{"gone", DAFL_FIELD_SET, 0}, PEER},
    [DAFL_EVENT_RESULT] = {{"fault", DAFL_FIELD_FAULT, 0}, PEER,
                           {"question", DAFL_FIELD_NUMBER, 0},
                           {"sum", DAFL_FIELD_DIGEST, 0},
                           {"u3", DAFL_FIELD_SET, 0}},
    [DAFL_EVENT_ERROR] = {{"fault", DAFL_FIELD_FAULT, 0},
                          PEER,
                          {"set", DAFL_FIELD_SET, 0}},
    [DAFL_EVENT_DONE] = {{"fault", DAFL_FIELD_FAULT, 0}, PEER},
    [DAFL_EVENT_PEER_HEAD] = {{"boot", DAFL_FIELD_U32, 4},
                              {"head", DAFL_FIELD_DIGEST, 0},
                              {"message", DAFL_FIELD_U32, 0}, PEER},
    [DAFL_EVENT_KEY] = {{"he", DAFL_FIELD_DIGEST, 0}, PEER},
    [DAFL_EVENT_OPEN] = {PEER, {"sealed", DAFL_FIELD_DIGEST, 0},
                         {"u3", DAFL_FIELD_SET, 0}},
    [DAFL_EVENT_ERRORS] = {{"count", DAFL_FIELD_NUMBER, 0},
                           {"fault", DAFL_FIELD_FAULT, 0}, PEER},
};
#undef PEER
/* clang-format on */

size_t dafl_field_bytes(dafl_field_kind kind)
{
    switch (kind) {
    case DAFL_FIELD_U8:
        return 1;
    case DAFL_FIELD_U16:
        return 2;
    case DAFL_FIELD_U32:
        return 4;
    case DAFL_FIELD_U64:
        return 8;
    case DAFL_FIELD_HASH:
    case DAFL_FIELD_HASHES:
        return DAFL_HASH_BYTES;
    case DAFL_FIELD_SIG:
    case DAFL_FIELD_SIGS:
        return DAFL_SIGNATURE_BYTES;
    case DAFL_FIELD_NUMBER:
    case DAFL_FIELD_PEER:
    case DAFL_FIELD_FAULT:
    case DAFL_FIELD_SET:
    case DAFL_FIELD_DIGEST:
    case DAFL_FIELD_MEMBERS:
    case DAFL_FIELD_NAME:
        break;
    }
    return 0;
}

/* ---- does it belong together? ---- */

/* What the bytes hold from `at` on. */
static dafl_reader bytes_from(const dafl_audit_line *l, size_t at)
{
    dafl_reader r = dafl_read(l->more);

    if (at > 0) { /* there may be no bytes at all */
        r.at += at;
        r.left -= at;
    }
    return r;
}

static bool is_name(dafl_reader r)
{
    char name[DAFL_NAME_MAX + 1] = {0};

    if (r.left >= sizeof name)
        return false;
    memcpy(name, r.at, r.left);
    return strlen(name) == r.left && dafl_name_ok(name);
}

/* Whether the bytes from the field on are of its kind; *end is where it ends.
 */
static bool field_fits(const dafl_audit_line *l, const dafl_field *f,
                       size_t *end)
{
    size_t bytes = dafl_field_bytes(f->kind);
    dafl_members members;
    dafl_reader r;

    *end = 0;
    if (f->kind <= DAFL_FIELD_DIGEST)
        return true;
    *end = f->at + bytes;
    if (f->kind < DAFL_FIELD_HASHES)
        return *end <= l->more.len;
    *end = l->more.len;
    if (f->at > l->more.len)
        return false;
    r = bytes_from(l, f->at);
    if (f->kind == DAFL_FIELD_NAME)
        return is_name(r);
    if (f->kind == DAFL_FIELD_MEMBERS)
        return dafl_get_members(&r, &members) == DAFL_OK &&
               dafl_get_end(&r) == DAFL_OK;
    return r.left == bytes * dafl_members_count(&l->event.set);
}

static bool line_fits(const dafl_audit_line *l)
{
    size_t used = 0;

    if ((unsigned)l->event.kind >= DAFL_EVENTS ||
        (unsigned)l->event.fault >= DAFL_FAULT_COUNT || l->seq > INT64_MAX ||
        l->ts > INT64_MAX)
        return false;
    for (const dafl_field *f = dafl_audit_fields[l->event.kind]; f->key != NULL;
         f++) {
        size_t end = 0;
        if (!field_fits(l, f, &end))
            return false;
        used = end > used ? end : used;
    }
    return used == l->more.len;
}

/* ---- text ---- */

static void put_text(dafl_writer *w, const char *text)
{
    dafl_put_fixed(w, text, strlen(text));
}

static void put_number(dafl_writer *w, uint64_t v)
{
    char digits[20];
    size_t at = sizeof digits;

    do
        digits[--at] = (char)('0' + v % 10);
    while ((v /= 10) != 0);
    dafl_put_fixed(w, digits + at, sizeof digits - at);
}

static void put_hex(dafl_writer *w, const void *bytes, size_t len)
{
    char hex[2 * DAFL_SIGNATURE_BYTES + 1];

    put_text(w, "\"");
    put_text(w, sodium_bin2hex(hex, sizeof hex, bytes, len));
    put_text(w, "\"");
}

static void put_members(dafl_writer *w, const dafl_members *m)
{
    const char *comma = "";

    put_text(w, "[");
    for (size_t i = 0; i < m->n; i++)
        if (dafl_members_has(m, i)) {
            put_text(w, comma);
            put_number(w, i);
            comma = ",";
        }
    put_text(w, "]");
}

/* The lengths have been checked. */
static void put_from_bytes(dafl_writer *w, const dafl_audit_line *l,
                           const dafl_field *f)
{
    dafl_reader r = bytes_from(l, f->at);
    size_t bytes = dafl_field_bytes(f->kind);
    dafl_members members = {0};
    uint64_t v = 0;

    switch (f->kind) {
    case DAFL_FIELD_HASH:
    case DAFL_FIELD_SIG:
        put_hex(w, r.at, bytes);
        break;
    case DAFL_FIELD_HASHES:
    case DAFL_FIELD_SIGS:
        put_text(w, "[");
        for (size_t i = 0; i < r.left; i += bytes) {
            put_text(w, i > 0 ? "," : "");
            put_hex(w, r.at + i, bytes);
        }
        put_text(w, "]");
        break;
    case DAFL_FIELD_MEMBERS:
        w->failed |= dafl_get_members(&r, &members) != DAFL_OK;
        put_members(w, &members);
        break;
    case DAFL_FIELD_NAME:
        put_text(w, "\"");
        dafl_put_fixed(w, r.at, r.left);
        put_text(w, "\"");
        break;
    default:
        for (size_t i = 0; i < bytes; i++)
            v |= (uint64_t)r.at[i] << 8 * i;
        put_number(w, v);
        break;
    }
}

static void put_value(dafl_writer *w, const dafl_audit_line *l,
                      const dafl_field *f)
{
    const dafl_event *e = &l->event;

    switch (f->kind) {
    case DAFL_FIELD_NUMBER:
        put_number(w, e->number);
        break;
    case DAFL_FIELD_PEER:
        put_number(w, e->peer);
        break;
    case DAFL_FIELD_FAULT:
        put_text(w, "\"");
        put_text(w, dafl_fault_name(e->fault));
        put_text(w, "\"");
        break;
    case DAFL_FIELD_SET:
        put_members(w, &e->set);
        break;
    case DAFL_FIELD_DIGEST:
        put_hex(w, e->digest.b, sizeof e->digest.b);
        break;
    default:
        put_from_bytes(w, l, f);
        break;
    }
}

static bool left_out(const dafl_event *e, const dafl_field *f)
{
    return (f->kind == DAFL_FIELD_NUMBER && e->number == DAFL_NO_QUESTION) ||
           (f->kind == DAFL_FIELD_PEER && e->peer == DAFL_NOBODY) ||
           (f->kind == DAFL_FIELD_SET && e->set.n == 0);
}

static void put_data(dafl_writer *w, const dafl_audit_line *l)
{
    const char *before = "{\"";

    for (const dafl_field *f = dafl_audit_fields[l->event.kind]; f->key != NULL;
         f++) {
        if (left_out(&l->event, f))
            continue;
        put_text(w, before);
        put_text(w, f->key);
        put_text(w, "\":");
        put_value(w, l, f);
        before = ",\"";
    }
    put_text(w, before[0] == '{' ? "{}" : "}");
}

/* The object; `whole`: with hash and sig. */
static void put_object(dafl_writer *w, const dafl_audit_line *l, bool whole)
{
    put_text(w, "{\"data\":");
    put_data(w, l);
    put_text(w, ",\"event\":\"");
    put_text(w, dafl_event_name(l->event.kind));
    if (whole) {
        put_text(w, "\",\"hash\":");
        put_hex(w, l->hash.b, sizeof l->hash.b);
    }
    put_text(w, whole ? ",\"party\":" : "\",\"party\":");
    put_number(w, l->party);
    put_text(w, ",\"prev\":");
    put_hex(w, l->prev.b, sizeof l->prev.b);
    put_text(w, ",\"run\":");
    put_hex(w, l->event.run.b, sizeof l->event.run.b);
    put_text(w, ",\"seq\":");
    put_number(w, l->seq);
    if (whole) {
        put_text(w, ",\"sig\":");
        put_hex(w, l->sig.b, sizeof l->sig.b);
    }
    put_text(w, ",\"slot\":");
    put_number(w, l->event.slot);
    put_text(w, ",\"ts\":");
    put_number(w, l->ts);
    put_text(w, ",\"v\":1}");
}

dafl_err dafl_put_audit_line(dafl_writer *w, const dafl_audit_line *line)
{
    if (!line_fits(line))
        return DAFL_ERR_ARG;
    put_object(w, line, true);
    put_text(w, "\n");
    return dafl_writer_done(w);
}

dafl_err dafl_audit_line_digest(dafl_digest *out, const dafl_audit_line *line)
{
    dafl_writer w = {0};
    dafl_err err;

    if (!line_fits(line))
        return DAFL_ERR_ARG;
    put_object(&w, line, false);
    err = dafl_writer_done(&w);
    if (err == DAFL_OK)
        dafl_hash_one(out, "deepafl/audit", dafl_writer_bytes(&w));
    dafl_writer_drop(&w);
    return err;
}

void dafl_audit_init(dafl_audit *a, const dafl_secret_identity *self,
                     uint16_t party, uint16_t n_clients)
{
    *a = (dafl_audit){.self = self, .party = party, .n_clients = n_clients};
}

dafl_err dafl_audit_add(dafl_audit *a, dafl_writer *text,
                        const dafl_event *event, dafl_bytes more, uint64_t ts)
{
    dafl_audit_line line = {.seq = a->seq + 1,
                            .ts = ts,
                            .party = a->party,
                            .event = *event,
                            .more = more,
                            .prev = a->head};

    DAFL_TRY(dafl_audit_line_digest(&line.hash, &line));
    dafl_sign(&line.sig, &line.hash, a->self);
    DAFL_TRY(dafl_put_audit_line(text, &line));
    a->seq = line.seq;
    a->head = line.hash;
    return DAFL_OK;
}
