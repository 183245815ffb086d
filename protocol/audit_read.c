/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the audit log: the one place of protocol/ that knows JSON. What is
 * read loosely here is written again and compared, so that only the canonical
 * text gets through. */
#include <string.h>

#include <jansson.h>

#include "protocol/audit.h"
#include "protocol/audit_fields.h"

/* A line of 256 clients with a signature each has less than half of it. */
#define TEXT_MAX ((size_t)1 << 17)

static bool get_number(uint64_t *out, const json_t *v, uint64_t max)
{
    json_int_t got = json_integer_value(v);

    if (!json_is_integer(v) || got < 0 || (uint64_t)got > max)
        return false;
    *out = (uint64_t)got;
    return true;
}

static bool get_hex(void *out, size_t len, const json_t *v)
{
    size_t got = 0;

    return json_string_length(v) == 2 * len &&
           sodium_hex2bin(out, len, json_string_value(v), 2 * len, NULL, &got,
                          NULL) == 0 &&
           got == len;
}

static bool get_members(dafl_members *out, const json_t *v, uint16_t n)
{
    uint64_t client;

    if (!json_is_array(v))
        return false;
    *out = dafl_members_none(n);
    for (size_t i = 0; i < json_array_size(v); i++) {
        if (!get_number(&client, json_array_get(v, i), UINT16_MAX) ||
            client >= n)
            return false;
        dafl_members_add(out, client);
    }
    return true;
}

/* ---- the event's bytes ---- */

/* Write at a place, behind which there may be something already. */
static void put_at(dafl_writer *w, size_t at, const void *bytes, size_t len)
{
    while (w->len < at + len && dafl_writer_done(w) == DAFL_OK)
        dafl_put_u8(w, 0);
    if (dafl_writer_done(w) == DAFL_OK)
        memcpy(w->ptr + at, bytes, len);
}

static bool get_list(dafl_writer *w, const dafl_field *f, const json_t *v)
{
    size_t bytes = dafl_field_bytes(f->kind);
    uint8_t item[DAFL_SIGNATURE_BYTES];

    if (!json_is_array(v) || json_array_size(v) > DAFL_CLIENTS_MAX)
        return false;
    for (size_t i = 0; i < json_array_size(v); i++) {
        if (!get_hex(item, bytes, json_array_get(v, i)))
            return false;
        put_at(w, f->at + i * bytes, item, bytes);
    }
    return true;
}

static bool get_into_bytes(dafl_writer *w, const dafl_field *f, const json_t *v,
                           uint16_t n)
{
    size_t bytes = dafl_field_bytes(f->kind);
    uint8_t item[DAFL_SIGNATURE_BYTES];
    dafl_members members;
    dafl_writer sub = {0};
    uint64_t number = 0;

    switch (f->kind) {
    case DAFL_FIELD_HASH:
    case DAFL_FIELD_SIG:
        if (!get_hex(item, bytes, v))
            return false;
        put_at(w, f->at, item, bytes);
        return true;
    case DAFL_FIELD_HASHES:
    case DAFL_FIELD_SIGS:
        return get_list(w, f, v);
    case DAFL_FIELD_MEMBERS:
        if (!get_members(&members, v, n))
            return false;
        dafl_put_members(&sub, &members);
        w->failed |= sub.failed;
        put_at(w, f->at, sub.ptr, sub.len);
        dafl_writer_drop(&sub);
        return true;
    case DAFL_FIELD_NAME:
        if (!json_is_string(v))
            return false;
        put_at(w, f->at, json_string_value(v), json_string_length(v));
        return true;
    default:
        if (!get_number(&number, v,
                        bytes == 8 ? INT64_MAX
                                   : ((uint64_t)1 << 8 * bytes) - 1))
            return false;
        for (size_t i = 0; i < bytes; i++)
            item[i] = (uint8_t)(number >> 8 * i);
        put_at(w, f->at, item, bytes);
        return true;
    }
}

/* ---- the event ---- */

static bool get_fault(dafl_fault *out, const json_t *v)
{
    for (int i = 0; json_is_string(v) && i < DAFL_FAULT_COUNT; i++)
        if (strcmp(json_string_value(v), dafl_fault_name((dafl_fault)i)) == 0) {
            *out = (dafl_fault)i;
            return true;
        }
    return false;
}

/* A value that is there; those that may be left out are what they are then. */
static bool get_value(dafl_audit_line *l, const dafl_field *f, const json_t *v,
                      uint16_t n)
{
    dafl_event *e = &l->event;
    uint64_t number = 0;

    switch (f->kind) {
    case DAFL_FIELD_NUMBER:
        if (v != NULL && !get_number(&number, v, UINT32_MAX))
            return false;
        e->number = v == NULL ? DAFL_NO_QUESTION : (uint32_t)number;
        return true;
    case DAFL_FIELD_PEER:
        if (v != NULL && !get_number(&number, v, UINT16_MAX))
            return false;
        e->peer = v == NULL ? DAFL_NOBODY : (uint16_t)number;
        return true;
    case DAFL_FIELD_FAULT:
        return get_fault(&e->fault, v);
    case DAFL_FIELD_SET:
        return v == NULL || get_members(&e->set, v, n);
    case DAFL_FIELD_DIGEST:
        return get_hex(e->digest.b, sizeof e->digest.b, v);
    default:
        return get_into_bytes(&l->own, f, v, n);
    }
}

static bool get_kind(dafl_event_kind *out, const json_t *v)
{
    for (int i = 0; json_is_string(v) && i < DAFL_EVENTS; i++)
        if (strcmp(json_string_value(v), dafl_event_name((dafl_event_kind)i)) ==
            0) {
            *out = (dafl_event_kind)i;
            return true;
        }
    return false;
}

static bool get_object(dafl_audit_line *l, const json_t *o, uint16_t n)
{
    const json_t *data = json_object_get(o, "data");
    uint64_t party = 0, slot = 0, v = 0;

    if (!get_number(&v, json_object_get(o, "v"), 1) || v != 1 ||
        !get_number(&l->seq, json_object_get(o, "seq"), INT64_MAX) ||
        !get_number(&l->ts, json_object_get(o, "ts"), INT64_MAX) ||
        !get_number(&party, json_object_get(o, "party"), UINT16_MAX) ||
        !get_number(&slot, json_object_get(o, "slot"), UINT32_MAX) ||
        !get_hex(l->event.run.b, 16, json_object_get(o, "run")) ||
        !get_hex(l->prev.b, 32, json_object_get(o, "prev")) ||
        !get_hex(l->hash.b, 32, json_object_get(o, "hash")) ||
        !get_hex(l->sig.b, 64, json_object_get(o, "sig")) ||
        !get_kind(&l->event.kind, json_object_get(o, "event")))
        return false;
    l->party = (uint16_t)party;
    l->event.slot = (uint32_t)slot;
    l->event.peer = DAFL_NOBODY;
    for (const dafl_field *f = dafl_audit_fields[l->event.kind]; f->key != NULL;
         f++)
        if (!get_value(l, f, json_object_get(data, f->key), n))
            return false;
    l->more = dafl_writer_bytes(&l->own);
    return true;
}

/* Whether the line is written as it was read. */
static dafl_err compare(const dafl_audit_line *l, dafl_bytes text)
{
    dafl_writer w = {0};
    dafl_err err = dafl_writer_done(&l->own);

    if (err == DAFL_OK)
        err = dafl_put_audit_line(&w, l);
    if (err == DAFL_OK &&
        (w.len != text.len + 1 || memcmp(w.ptr, text.ptr, text.len) != 0))
        err = DAFL_ERR_PEER;
    dafl_writer_drop(&w);
    return err == DAFL_ERR_ARG ? DAFL_ERR_PEER : err;
}

dafl_err dafl_get_audit_line(dafl_audit_line *out, dafl_bytes text,
                             uint16_t n_clients)
{
    dafl_audit_line line = {0};
    json_error_t error;
    json_t *object = NULL;
    dafl_err err = DAFL_ERR_PEER;

    if (text.len > TEXT_MAX || n_clients > DAFL_CLIENTS_MAX)
        return DAFL_ERR_PEER;
    object = json_loadb((const char *)text.ptr, text.len,
                        JSON_REJECT_DUPLICATES, &error);
    if (object == NULL && json_error_code(&error) == json_error_out_of_memory)
        err = DAFL_ERR_NOMEM;
    if (object != NULL && get_object(&line, object, n_clients))
        err = compare(&line, text);
    json_decref(object);
    if (err == DAFL_OK)
        *out = line;
    else
        dafl_audit_line_drop(&line);
    return err;
}

void dafl_audit_line_drop(dafl_audit_line *line)
{
    dafl_writer_drop(&line->own);
    *line = (dafl_audit_line){0};
}

dafl_err dafl_audit_resume(dafl_audit *a, size_t *keep, dafl_bytes log,
                           dafl_why *why)
{
    size_t end = log.len, start;
    dafl_audit_line last;
    dafl_digest hash;
    bool ours;
    dafl_err err;

    while (end > 0 && log.ptr[end - 1] != '\n')
        end--;
    *keep = end;
    if (end == 0)
        return DAFL_OK;
    for (start = end - 1; start > 0 && log.ptr[start - 1] != '\n';)
        start--;
    err = dafl_get_audit_line(
        &last, (dafl_bytes){log.ptr + start, end - 1 - start}, a->n_clients);
    if (err == DAFL_ERR_PEER)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "the last line of the log is damaged");
    if (err != DAFL_OK)
        return err;
    err = dafl_audit_line_digest(&hash, &last);
    ours = last.party == a->party && dafl_digest_equal(&hash, &last.hash) &&
           dafl_sign_check(&last.sig, &last.hash, a->self->public.sign_pk) ==
               DAFL_OK;
    if (err == DAFL_OK && !ours)
        err = dafl_fail(why, DAFL_ERR_INPUT,
                        "the last line of the log is not by '%s'",
                        a->self->public.name);
    if (err == DAFL_OK) {
        a->seq = last.seq;
        a->head = last.hash;
    }
    dafl_audit_line_drop(&last);
    return err;
}
