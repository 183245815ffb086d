/* SPDX-License-Identifier: Apache-2.0 */
/* Segments that a malicious server might send. */
#include <math.h>

#include "tests/protocol/deep_world.h"
#include "tests/same_model.h"

static void refuse(dafl_deep_client *c, const dafl_segment *good,
                   const uint8_t *bytes, size_t len)
{
    dafl_segment bad = *good;

    bad.bytes = (dafl_bytes){bytes, len};
    assert_int_equal(cm->follow(c, &bad), DAFL_E_MODEL);
}

/* Everything that can be wrong with the outside of a segment. */
static void refuse_envelopes(dafl_deep_client *c, const dafl_segment *good)
{
    for (int i = -2; i <= 2; i++) {
        dafl_segment bad = *good;

        if (i == 0)
            continue;
        bad.query = good->query + (uint32_t)i;
        assert_int_equal(cm->follow(c, &bad), DAFL_E_MODEL);
        bad = *good;
        bad.kind = (uint8_t)(good->kind + i);
        assert_int_equal(cm->follow(c, &bad), DAFL_E_MODEL);
        bad = *good;
        bad.layer = (uint16_t)(good->layer + i);
        assert_int_equal(cm->follow(c, &bad), DAFL_E_MODEL);
    }
}

static void refuse_numbers(dafl_deep_client *c, const dafl_segment *good,
                           const dafl_params *p)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY, 1.001e6, -1e300};
    size_t len = good->bytes.len, rank = good->bytes.ptr[0];
    size_t n = (len - 4) / 8;
    uint8_t *copy = malloc(len + 8 * (p->width + p->classes));

    assert_non_null(copy);
    memcpy(copy, good->bytes.ptr, len);
    memset(copy + len, 0, 8 * (p->width + p->classes));
    for (size_t i = 0; i < COUNT(bad); i++)
        for (size_t j = 0; j < 3; j++) {
            size_t where = j == 0 ? 0 : j == 1 ? n - 1 : random_size(0, n - 1);

            put_number(copy + 4 + 8 * where, bad[i]);
            refuse(c, good, copy, len);
            memcpy(copy, good->bytes.ptr, len);
        }
    for (size_t i = 0; i < len; i++)
        refuse(c, good, copy, i);
    refuse(c, good, copy, len + 1);
    refuse(c, good, copy, len + 8);
    /* another rank: of this length, of its own length, and absurd ones */
    for (int more = -1; more <= 1; more += 2) {
        size_t per = n / rank;

        copy[0] = (uint8_t)((int)rank + more);
        refuse(c, good, copy, len);
        /* a head of smaller rank may be true, if its U is orthonormal */
        if (more == 1 || good->kind == DAFL_SEGMENT_BLOCK)
            refuse(c, good, copy, 4 + 8 * per * (size_t)copy[0]);
    }
    memset(copy, 0xff, 4);
    refuse(c, good, copy, len);
    memcpy(copy, good->bytes.ptr, len);
    if (good->kind == DAFL_SEGMENT_HEAD) {
        size_t u = random_size(0, p->width * rank - 1);
        double v = get_number(copy + 4 + 8 * u);

        put_number(copy + 4 + 8 * u, v + (v > 0 ? 0.01 : -0.01));
        refuse(c, good, copy, len); /* a column too long */
        memcpy(copy, good->bytes.ptr, len);
        for (size_t i = 0; i < p->width; i++) /* one column twice */
            memcpy(copy + 4 + 8 * (i * rank + 1), copy + 4 + 8 * (i * rank), 8);
        refuse(c, good, copy, len);
        memset(copy + 4, 0, 8 * p->width * rank); /* none at all */
        refuse(c, good, copy, len);
        /* more columns than classes, all in order otherwise */
        memset(copy, 0, len + 8 * (p->width + p->classes));
        copy[0] = (uint8_t)(rank + 1);
        for (size_t i = 0; i <= rank; i++)
            put_number(copy + 4 + 8 * (i * (rank + 1) + i), 1);
        refuse(c, good, copy, len + 8 * (p->width + p->classes));
    }
    free(copy);
}

static void a_malformed_segment_is_refused_and_forgotten(void **state)
{
    (void)state;
    for (int omega = 0; omega < 2; omega++) {
        dafl_params p = params();
        world *w;
        dafl_model *plain;

        if (omega)
            p.ablate = DAFL_ABLATE_OMEGA;
        w = new_world(&p, 2);
        do {
            const dafl_segment *good = get_segment(w, w->followed[0]);
            uint8_t one = 0;

            refuse_envelopes(w->clients[0], good);
            if (good->kind == DAFL_SEGMENT_NOTHING) {
                assert_int_equal(good->bytes.len, 0);
                refuse(w->clients[0], good, &one, 1);
            } else if (good->kind == DAFL_SEGMENT_CENSUS) {
                assert_int_equal(good->bytes.len, 8 * (p.classes + 1));
                refuse(w->clients[0], good, good->bytes.ptr,
                       good->bytes.len - 1);
                refuse(w->clients[0], good, NULL, 0);
            } else {
                assert_true(good->bytes.ptr[0] == p.classes);
                refuse_numbers(w->clients[0], good, &p);
            }
        } while (step(w, false) && w->followed[0] < dafl_deep_questions(&p));
        assert_int_equal(w->followed[0], dafl_deep_questions(&p));
        plain = plain_model(&p, NULL);
        assert_same_model(w->model, plain);
        dafl_model_free(&plain);
        drop_world(w);
    }
}

/* Segment `number` with its numbers from the `first` on times `factor`, for a
 * new client of one row that has followed all before it; the answer to that
 * question. */
static dafl_fault answer_scaled(world *w, plot *one, uint32_t number,
                                size_t first, double factor,
                                dafl_deep_client **out, int64_t *x)
{
    dafl_question q = {.number = number};
    dafl_segment bad = *get_segment(w, number);
    uint8_t *copy = malloc(bad.bytes.len);
    uint32_t followed = 0;

    assert_non_null(copy);
    *out = new_client(&w->p, one);
    bring_up(w, *out, &followed, number - 1);
    memcpy(copy, bad.bytes.ptr, bad.bytes.len);
    for (size_t i = 4 + 8 * first; i < bad.bytes.len; i += 8)
        put_number(copy + i, factor * get_number(copy + i));
    bad.bytes.ptr = copy;
    assert_int_equal(cm->follow(*out, &bad), 0);
    free(copy);
    return cm->answer(*out, &q, x, length(w, &q));
}

/* Blocks and heads that grow until the first value is just beyond q. What was
 * computed on the way is wiped, and there is none when asked again, although
 * the row that was out of range is now zero. */
static void just_beyond_the_contract_is_beyond(void **state)
{
    dafl_params p = params();
    world *w = new_world(&p, 1);
    int64_t *x = integers(4096);

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_true(step(w, true));
    for (uint32_t i = 0; i < 16; i++) {
        dafl_question q = {.number = 2 + i % 2};
        plot one = {.rows = w->rows + i, .n = 1};
        size_t first = q.number == 2 ? p.width * p.classes : 0;
        dafl_deep_client *c = NULL;
        double factor = 1;

        while (answer_scaled(w, &one, q.number, first, factor, &c, x) == 0) {
            dafl_deep_client_free(&c);
            factor *= 1.02;
            assert_true(factor < 1e6);
        }
        assert_true(factor > 1);
        for (int times = 0; times < 3; times++) {
            for (size_t j = 0; j < length(w, &q); j++)
                assert_int_equal(x[j], 0);
            assert_int_equal(cm->answer(c, &q, x, length(w, &q)), DAFL_E_MODEL);
        }
        dafl_deep_client_free(&c);
    }
    free(x);
    drop_world(w);
}

/* The largest numbers that are let in do no harm either. */
static void a_model_that_leaves_the_contract_gets_no_answer(void **state)
{
    dafl_params p = params();
    world *w = new_world(&p, 1);
    dafl_deep_client *c = w->clients[0];
    dafl_question q = {.number = 3}, census = {0};
    uint8_t *huge;
    dafl_segment bad;
    dafl_shape shape;
    int64_t *x;

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_true(step(w, true));
    bad = *get_segment(w, 3);
    assert_int_equal(bad.kind, DAFL_SEGMENT_BLOCK);
    huge = malloc(bad.bytes.len);
    assert_non_null(huge);
    memcpy(huge, bad.bytes.ptr, bad.bytes.len);
    for (size_t i = 4; i < bad.bytes.len; i += 8)
        put_number(huge + i, DAFL_DEEP_LARGEST);
    bad.bytes.ptr = huge;
    assert_int_equal(cm->follow(c, &bad), 0);
    assert_int_equal(cm->shape(c, &q, &shape), 0);
    x = integers((size_t)shape.len);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(cm->answer(c, &q, x, (size_t)shape.len), DAFL_E_MODEL);
        for (size_t j = 0; j < shape.len; j++)
            assert_int_equal(x[j], 0);
    }
    assert_true(dafl_fault_falls(DAFL_E_MODEL) == DAFL_FALLS_SLOT);
    free(x);
    /* it follows on, as a helper */
    assert_true(sm->next(w->server, true, &q));
    w->followed[0] = 4;
    {
        plot same = w->plots[0];
        dafl_deep_client *other = new_client(&p, &same);
        dafl_members all = all_of(1);
        uint32_t followed = 0;

        x = answer_of(w, other, &followed, &q);
        assert_non_null(x);
        give(w, &q, x, &all);
        free(x);
        dafl_deep_client_free(&other);
    }
    assert_true(sm->next(w->server, true, &q));
    assert_null(answer_of(w, c, &w->followed[0], &q));
    /* and is a client again once it has started over */
    assert_int_equal(cm->rewind(c), 0);
    w->followed[0] = 0;
    x = answer_of(w, c, &w->followed[0], &census);
    assert_non_null(x);
    assert_int_equal(x[0], ROWS);
    free(x);
    x = answer_of(w, c, &w->followed[0], &q);
    assert_non_null(x);
    free(x);
    free(huge);
    drop_world(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_malformed_segment_is_refused_and_forgotten),
        CASE(a_model_that_leaves_the_contract_gets_no_answer),
        CASE(just_beyond_the_contract_is_beyond),
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
