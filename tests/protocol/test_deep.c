/* SPDX-License-Identifier: Apache-2.0 */
/* The two sides of DeepAFL as the machines see them, without the machines:
 * questions, segments, answers and sums go straight from one table to the
 * other. */
#include <math.h>

#include "tests/sites.h"
#include "tests/same_model.h"
#include "protocol/deep.h"
#include "protocol/weaken.h"

#define MOST_CLIENTS 6
#define ROWS 160
#define HELD 30
#define LAYERS 3
#define MOST_QUESTIONS (2 * LAYERS + 3)

static const dafl_client_method *const cm = &dafl_deep_client_method;
static const dafl_server_method *const sm = &dafl_deep_server_method;
static const dafl_participation everyone = {.permille = 1000};

/* ---- clients, a server, and what passes between them ---- */

/* One client's rows. */
typedef struct {
    const uint32_t *rows, *held;
    size_t n, n_held;
    size_t founded; /* how many times */
    bool gone;      /* founding fails */
} plot;

typedef struct {
    dafl_params p;
    size_t n;
    uint32_t rows[ROWS], held[HELD];
    plot plots[MOST_CLIENTS];
    dafl_deep_client *clients[MOST_CLIENTS];
    uint32_t followed[MOST_CLIENTS];
    dafl_model *model;
    dafl_deep_server *server;
    dafl_writer segments[MOST_QUESTIONS];
    dafl_segment heads[MOST_QUESTIONS];
    uint32_t n_segments;
} world;

static dafl_data data;
static dafl_pool *pool;

static int setup(void **state)
{
    if (make_dir(state) != 0)
        return -1;
    data = random_data(ROWS + HELD, 7, 4);
    assert_ok(dafl_pool_new(&pool, 1));
    return 0;
}

static int teardown(void **state)
{
    dafl_pool_free(&pool);
    dafl_data_close(&data);
    return remove_dir(state);
}

static dafl_params params(void)
{
    dafl_params p = {.features = 7,
                     .width = 12,
                     .hidden = 12,
                     .classes = 4,
                     .layers = LAYERS,
                     .lambda = 0.5,
                     .gamma = 0.1,
                     .contract = DAFL_CONTRACT_DEFAULT};

    p.seed.b[0] = (uint8_t)random_u64();
    assert_ok(dafl_params_check(&p, NULL));
    return p;
}

static dafl_err found(void *ctx, const dafl_params *p,
                      const dafl_projection *first, dafl_site **site,
                      dafl_site **held, dafl_digest *rows, dafl_why *why)
{
    plot *at_plot = ctx;

    if (at_plot->gone)
        return DAFL_ERR_INPUT;
    at_plot->founded++;
    assert_ok(dafl_deep_digest(rows, &data, at_plot->rows, at_plot->n));
    DAFL_TRY(dafl_site_new(site, p, pool, &data, at_plot->rows, at_plot->n,
                           first, why));
    if (at_plot->n_held > 0)
        assert_ok(dafl_site_new(held, p, pool, &data, at_plot->held,
                                at_plot->n_held, first, why));
    return DAFL_OK;
}

static dafl_deep_client *new_client(const dafl_params *p, plot *at_plot)
{
    dafl_deep_client *c = NULL;

    assert_ok(dafl_deep_client_new(&c, p, found, NULL, at_plot, NULL));
    dafl_deep_client_allow(c, true, true);
    return c;
}

/* The first ROWS rows, shuffled, cut at random into n clients, maybe empty;
 * client 0 has the other rows held out. */
static world *new_world(const dafl_params *p, size_t n)
{
    world *w = calloc(1, sizeof *w);
    size_t from = 0;

    assert_non_null(w);
    w->p = *p;
    w->n = n;
    for (uint32_t i = 0; i < ROWS; i++) {
        size_t j = random_size(0, i);

        w->rows[i] = w->rows[j];
        w->rows[j] = i;
    }
    for (uint32_t i = 0; i < HELD; i++)
        w->held[i] = ROWS + i;
    for (size_t k = 0; k < n; k++) {
        size_t to = k + 1 == n ? ROWS : random_size(from, ROWS);

        w->plots[k] = (plot){.rows = w->rows + from, .n = to - from};
        if (k == 0) {
            w->plots[k].held = w->held;
            w->plots[k].n_held = HELD;
        }
        w->clients[k] = new_client(&w->p, &w->plots[k]);
        from = to;
    }
    assert_ok(dafl_model_new(&w->model, p));
    assert_ok(dafl_deep_server_new(&w->server, w->model, &everyone, n));
    dafl_deep_server_allow_small(w->server);
    return w;
}

static void drop_world(world *w)
{
    for (size_t k = 0; k < w->n; k++)
        dafl_deep_client_free(&w->clients[k]);
    for (size_t i = 0; i < MOST_QUESTIONS; i++)
        dafl_writer_drop(&w->segments[i]);
    dafl_deep_server_free(&w->server);
    dafl_model_free(&w->model);
    free(w);
}

static dafl_members all_of(size_t n)
{
    dafl_members m = dafl_members_none(n);

    for (size_t k = 0; k < n; k++)
        dafl_members_add(&m, k);
    return m;
}

/* Segment `number`, written when it is first wanted. */
static const dafl_segment *get_segment(world *w, uint32_t number)
{
    while (w->n_segments <= number) {
        uint32_t i = w->n_segments++;

        assert_int_equal(
            sm->segment(w->server, i, &w->heads[i], &w->segments[i]), 0);
        w->heads[i].query = i;
        w->heads[i].bytes = dafl_writer_bytes(&w->segments[i]);
    }
    return &w->heads[number];
}

/* Let a client follow up to the question, from the segment it has not seen. */
static void bring_up(world *w, dafl_deep_client *c, uint32_t *followed,
                     uint32_t number)
{
    for (; *followed <= number; ++*followed)
        assert_int_equal(cm->follow(c, get_segment(w, *followed)), 0);
}

static size_t length(world *w, const dafl_question *q)
{
    dafl_shape shape;

    assert_int_equal(sm->shape(w->server, q, &shape), 0);
    return (size_t)shape.len;
}

static int64_t *integers(size_t n)
{
    int64_t *x = calloc(n + 1, sizeof *x);

    assert_non_null(x);
    return x;
}

/* One client's answer, to be freed; NULL when it refuses. */
static int64_t *answer_of(world *w, dafl_deep_client *c, uint32_t *followed,
                          const dafl_question *q)
{
    size_t len = length(w, q);
    int64_t *x = integers(len);
    dafl_shape shape = {0};
    dafl_fault fault;

    bring_up(w, c, followed, q->number);
    assert_int_equal(cm->shape(c, q, &shape), 0);
    assert_int_equal(shape.len, len);
    memset(x, 0x55, len * sizeof *x);
    fault = cm->answer(c, q, x, len);
    if (fault == DAFL_FAULT_NONE)
        return x;
    assert_int_equal(fault, DAFL_E_MODEL);
    free(x);
    return NULL;
}

/* The sum over a cohort, to be freed; NULL when someone refuses. */
static int64_t *sum_or_none(world *w, const dafl_question *q,
                            const dafl_members *cohort)
{
    size_t len = length(w, q);
    int64_t *sum = integers(len);

    for (size_t k = 0; k < w->n && sum != NULL; k++) {
        int64_t *x;

        if (!dafl_members_has(cohort, k))
            continue;
        x = answer_of(w, w->clients[k], &w->followed[k], q);
        for (size_t i = 0; x != NULL && i < len; i++)
            sum[i] += x[i];
        if (x == NULL) {
            free(sum);
            sum = NULL;
        }
        free(x);
    }
    return sum;
}

static int64_t *sum_of(world *w, const dafl_question *q,
                       const dafl_members *cohort)
{
    int64_t *sum = sum_or_none(w, q, cohort);

    assert_non_null(sum);
    return sum;
}

static void give(world *w, const dafl_question *q, const int64_t *sum,
                 const dafl_members *cohort)
{
    dafl_why why = {""};

    if (sm->take(w->server, q, sum, length(w, q), cohort, &why) != 0)
        fail_msg("question %u: %s", (unsigned)q->number, why.text);
}

/* Ask everyone the next question; false when there is none. */
static bool step(world *w, bool plain)
{
    dafl_members all = all_of(w->n);
    dafl_question q;
    int64_t *sum;

    if (!sm->next(w->server, plain, &q))
        return false;
    sum = sum_of(w, &q, &all);
    give(w, &q, sum, &all);
    free(sum);
    return true;
}

/* What a trainer and one site with all rows make of it. */
static dafl_model *plain_model(const dafl_params *p, dafl_site **site)
{
    dafl_model *model = NULL;
    dafl_trainer *trainer = NULL;
    dafl_data pooled = data;
    dafl_query query;
    dafl_set one;
    crew c;

    pooled.n = ROWS;
    assert_ok(dafl_model_new(&model, p));
    assert_ok(dafl_trainer_new(&trainer, model, 1));
    assert_ok(dafl_set_init(&one, 1));
    dafl_set_add(&one, 0);
    c = make_crew(model, pool, &pooled, 1);
    for (dafl_trainer_next(trainer, &query, &one);
         query.kind != DAFL_QUERY_DONE;
         dafl_trainer_next(trainer, &query, &one)) {
        dafl_sum sum = ask(&c, &query);

        assert_ok(dafl_trainer_take(trainer, &query, &sum, &one, NULL));
        dafl_sum_drop(&sum);
    }
    if (site != NULL)
        *site = c.sites[0];
    else
        drop_crew(&c);
    dafl_set_drop(&one);
    dafl_trainer_free(&trainer);
    return model;
}

/* Every kind of training there is. */
static dafl_params variant(size_t i)
{
    dafl_params p = params();

    p.schedule = i % 2 == 0 ? DAFL_SCHEDULE_DELTA : DAFL_SCHEDULE_FULL;
    p.ablate = (dafl_ablation)(i / 2 % 5);
    p.layers = random_size(0, LAYERS);
    if (i < 2)
        p.layers = LAYERS;
    if (i >= 10) {
        p.method = DAFL_METHOD_AFL;
        p.contract.q = 8;
    }
    assert_ok(dafl_params_check(&p, NULL));
    return p;
}
#define VARIANTS 12

/* ---- questions and segments ---- */

static void questions_are_numbered_in_the_order_they_are_asked(void **state)
{
    (void)state;
    for (size_t i = 0; i < 40; i++) {
        dafl_params p = variant(i % VARIANTS);
        world *w = new_world(&p, 2);
        bool omega = p.ablate == DAFL_ABLATE_OMEGA;
        uint32_t n = 0;
        dafl_question q;
        dafl_query query;

        while (sm->next(w->server, random_size(0, 1), &q)) {
            dafl_shape shape;

            assert_int_equal(q.number, n++);
            dafl_deep_query(&query, &p, &q);
            assert_int_equal(dafl_deep_number(&p, &query), q.number);
            assert_int_equal(query.rank, q.rank);
            assert_int_equal(query.kind == DAFL_QUERY_INCREMENT, q.rank > 0);
            assert_int_equal(sm->shape(w->server, &q, &shape), 0);
            assert_int_equal(shape.n_ties, q.rank > 0 ? 2 : 0);
            if (q.rank > 0) {
                assert_int_equal(shape.ties[0], q.number - 1);
                assert_int_equal(shape.ties[1], q.number - 2);
                assert_int_equal(shape.len, p.width * q.rank);
            }
            assert_true(step(w, q.rank == 0));
        }
        assert_int_equal(n, dafl_deep_questions(&p));
        assert_int_equal(n, 3 + (omega ? 1 : 2) * p.layers);
        q = (dafl_question){.number = n};
        dafl_deep_query(&query, &p, &q);
        assert_int_equal(query.kind, DAFL_QUERY_DONE);
        assert_int_equal(dafl_deep_number(&p, &query), n);
        drop_world(w);
    }
}

/* The heart of it: whoever holds which rows. */
static void the_model_is_that_of_one_site_with_all_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < VARIANTS; i++) {
        dafl_params p = variant(i);
        dafl_site *site = NULL;
        dafl_model *plain = plain_model(&p, &site);
        world *w = new_world(&p, random_size(1, MOST_CLIENTS));

        while (step(w, false))
            ;
        assert_same_model(w->model, plain);
        assert_int_equal(dafl_deep_server_rows(w->server, false), ROWS);
        assert_int_equal(dafl_deep_server_rows(w->server, true), HELD);
        for (size_t t = 0; t <= p.layers; t++) {
            size_t train = 0;

            for (size_t k = 0; k < w->n; k++)
                train +=
                    dafl_site_correct(dafl_deep_client_site(w->clients[k]), t);
            assert_int_equal(dafl_deep_server_correct(w->server, t, false),
                             dafl_site_correct(site, t));
            assert_int_equal(train, dafl_site_correct(site, t));
        }
        drop_world(w);
        dafl_site_free(&site);
        dafl_model_free(&plain);
    }
}

static void held_out_rows_follow_the_model_and_are_counted_only(void **state)
{
    dafl_params p = params();
    world *w = new_world(&p, 3);
    uint32_t rows[HELD];
    plot apart = {.rows = rows, .n = HELD}; /* as a site's own */
    dafl_deep_client *c;
    uint32_t followed = 0;
    dafl_question q = {0};

    (void)state;
    for (uint32_t i = 0; i < HELD; i++)
        rows[i] = ROWS + i;
    c = new_client(&p, &apart);
    while (sm->next(w->server, false, &q)) {
        (void)step(w, false);
        if (q.number + 1 < dafl_deep_questions(&p))
            (void)get_segment(w, q.number + 1);
    }
    free(answer_of(w, c, &followed, &q));
    for (size_t t = 0; t <= p.layers; t++)
        assert_int_equal(dafl_deep_server_correct(w->server, t, true),
                         dafl_site_correct(dafl_deep_client_site(c), t));
    dafl_deep_client_free(&c);
    drop_world(w);
}

/* ---- missing, asking again, starting over ---- */

/* A twin of client 0 that is asked only now and then. */
static void one_that_missed_questions_answers_like_the_others(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3 * VARIANTS; i++) {
        dafl_params p = variant(i % VARIANTS);
        world *w = new_world(&p, 2);
        plot same = w->plots[0];
        dafl_deep_client *twin = new_client(&p, &same);
        dafl_members all = all_of(w->n);
        uint32_t followed = 0, absent = (uint32_t)random_size(0, 5);
        size_t compared = 0;
        dafl_question q;

        while (sm->next(w->server, random_size(0, 3) == 0, &q)) {
            size_t len = length(w, &q);
            int64_t *mine = NULL, *sum = integers(len);

            for (size_t k = 0; k < w->n; k++) {
                int64_t *x = answer_of(w, w->clients[k], &w->followed[k], &q);

                assert_non_null(x);
                for (size_t j = 0; j < len; j++)
                    sum[j] += x[j];
                if (k == 0)
                    mine = x;
                else
                    free(x);
            }
            if (absent-- == 0 || q.number + 1 == dafl_deep_questions(&p)) {
                int64_t *x = answer_of(w, twin, &followed, &q);

                assert_non_null(x);
                assert_memory_equal(x, mine, len * sizeof *x);
                free(x);
                compared++;
                absent = (uint32_t)random_size(1, 5);
            }
            free(mine);
            give(w, &q, sum, &all);
            free(sum);
        }
        assert_true(compared > 0);
        dafl_deep_client_free(&twin);
        drop_world(w);
    }
}

/* Every attempt but the last is thrown away, whichever variant it was. */
static void a_question_may_be_asked_again(void **state)
{
    (void)state;
    for (size_t i = 0; i < VARIANTS; i++) {
        dafl_params p = variant(i);
        dafl_model *plain;
        world *w = new_world(&p, 3);
        dafl_members all = all_of(w->n);
        dafl_question q;

        while (sm->next(w->server, false, &q)) {
            dafl_question full = {.number = q.number};
            size_t len;
            int64_t *first, *again;

            if (q.rank > 0)
                free(sum_of(w, &q, &all));
            /* An increment is gone with its base, for good. */
            for (size_t k = 0; q.rank > 0 && k < w->n; k++)
                assert_null(answer_of(w, w->clients[k], &w->followed[k], &q));
            len = length(w, &full);
            first = sum_of(w, &full, &all);
            for (size_t times = random_size(1, 3); times > 0; times--) {
                again = sum_of(w, &full, &all);
                assert_memory_equal(first, again, len * sizeof *first);
                free(again);
            }
            give(w, &full, first, &all);
            free(first);
        }
        /* ... and what comes of it is what the full schedule gives. */
        p.schedule = DAFL_SCHEDULE_FULL;
        plain = plain_model(&p, NULL);
        assert_same_model(w->model, plain);
        dafl_model_free(&plain);
        drop_world(w);
    }
}

/* On a fine grid, where increments lose little: 200 rows of errors 2^-24 in
 * operands near 1. */
static void increments_and_full_sums_give_the_same_model(void **state)
{
    dafl_params p = params();
    dafl_model *models[2];
    double worst = 0;

    (void)state;
    p.contract = (dafl_contract){.exact = true, .s = 24, .q = 4, .n_max = 2000};
    assert_ok(dafl_params_check(&p, NULL));
    for (size_t plain = 0; plain < 2; plain++) {
        world *w = new_world(&p, 3);
        dafl_question q;

        while (sm->next(w->server, plain == 1, &q)) {
            bool later = q.number % 2 == 1 && q.number > 1 &&
                         q.number + 1 < dafl_deep_questions(&p);

            assert_int_equal(q.rank > 0, plain == 0 && later);
            assert_true(step(w, plain == 1));
        }
        models[plain] = w->model;
        w->model = NULL;
        drop_world(w);
    }
    for (size_t t = 0; t <= p.layers; t++)
        for (size_t i = 0; i < p.width * p.classes; i++)
            worst = fmax(worst, fabs(models[0]->heads[t].w[i] -
                                     models[1]->heads[t].w[i]));
    assert_true(worst < 1e-5);
    dafl_model_free(&models[0]);
    dafl_model_free(&models[1]);
}

static void only_the_newest_question_is_answered(void **state)
{
    (void)state;
    for (size_t v = 0; v < 4; v++) { /* delta and full, with and without skip */
        dafl_params p = variant(v);
        world *w = new_world(&p, 1);
        dafl_deep_client *c = w->clients[0];
        uint32_t questions = dafl_deep_questions(&p);
        int64_t *x = integers(4096);
        dafl_question q = {0};

        assert_int_equal(cm->answer(c, &q, x, 1 + p.classes), DAFL_E_MODEL);
        while (sm->next(w->server, false, &q)) {
            size_t len = length(w, &q);
            dafl_shape shape;

            bring_up(w, c, &w->followed[0], q.number);
            for (uint32_t n = 0; n <= questions; n++)
                for (uint32_t rank = 0; rank <= 5; rank++) {
                    dafl_question other = {n, rank};

                    if (n == q.number && (rank == 0 || rank == q.rank))
                        continue;
                    assert_int_equal(cm->shape(c, &other, &shape),
                                     DAFL_E_MODEL);
                    assert_int_equal(cm->answer(c, &other, x, len),
                                     DAFL_E_MODEL);
                    /* the server knows the increment it has just had */
                    if (rank > 0 && n + 1 != q.number)
                        assert_int_equal(sm->shape(w->server, &other, &shape),
                                         DAFL_E_MODEL);
                }
            assert_int_equal(cm->answer(c, &q, x, len - 1), DAFL_E_MODEL);
            assert_int_equal(cm->answer(c, &q, x, len + 1), DAFL_E_MODEL);
            assert_true(step(w, false));
        }
        /* beyond the last question there is nothing to follow */
        assert_int_equal(cm->follow(c, &(dafl_segment){.query = questions}),
                         DAFL_E_MODEL);
        assert_int_equal(sm->segment(w->server, questions, &(dafl_segment){0},
                                     &(dafl_writer){0}),
                         DAFL_E_MODEL);
        free(x);
        drop_world(w);
    }
}

static void one_that_starts_over_answers_as_before(void **state)
{
    dafl_params p = params();
    world *w = new_world(&p, 2);
    dafl_members all = all_of(2);
    dafl_question q;
    size_t times = 1;

    (void)state;
    while (sm->next(w->server, true, &q)) {
        int64_t *sum = sum_of(w, &q, &all), *again;

        if (random_size(0, 1) == 0) {
            assert_int_equal(cm->rewind(w->clients[0]), 0);
            w->followed[0] = 0;
            assert_int_equal(w->plots[0].founded, ++times);
        }
        again = sum_of(w, &q, &all);
        assert_memory_equal(sum, again, length(w, &q) * sizeof *sum);
        give(w, &q, sum, &all);
        free(again);
        free(sum);
    }
    /* rows that are no longer good are other rows */
    w->plots[1].gone = true;
    assert_int_equal(cm->rewind(w->clients[1]), DAFL_E_DATA_CHANGED);
    assert_null(dafl_deep_client_site(w->clients[1]));
    q = (dafl_question){0};
    w->followed[1] = 0;
    assert_null(answer_of(w, w->clients[1], &w->followed[1], &q));
    w->plots[1].gone = false;
    assert_int_equal(cm->rewind(w->clients[1]), 0);
    w->followed[1] = 0;
    {
        int64_t *x = answer_of(w, w->clients[1], &w->followed[1], &q);

        assert_non_null(x);
        assert_int_equal(x[0], w->plots[1].n);
        free(x);
    }
    drop_world(w);
}

/* ---- segments that a malicious server might send ---- */

static void put_bits(uint8_t *at_byte, uint64_t bits)
{
    for (int i = 0; i < 8; i++)
        at_byte[i] = (uint8_t)(bits >> 8 * i);
}

static void put_number(uint8_t *at_byte, double v)
{
    uint64_t bits;

    memcpy(&bits, &v, sizeof bits);
    put_bits(at_byte, bits);
}

static double get_number(const uint8_t *at_byte)
{
    uint64_t bits = 0;
    double v;

    for (int i = 7; i >= 0; i--)
        bits = bits << 8 | at_byte[i];
    memcpy(&v, &bits, sizeof v);
    return v;
}

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

/* ---- params ---- */

static dafl_writer encoded(const dafl_params *p, const dafl_participation *part)
{
    dafl_writer w = {0};

    dafl_put_deep_params(&w, p, part);
    assert_ok(dafl_writer_done(&w));
    return w;
}

static void assert_encodes_otherwise(const dafl_params *p,
                                     const dafl_participation *part,
                                     const dafl_writer *than)
{
    dafl_writer w = encoded(p, part);

    assert_int_equal(w.len, than->len);
    assert_memory_not_equal(w.ptr, than->ptr, w.len);
    dafl_writer_drop(&w);
}

#define CHANGED(field, value)                       \
    do {                                            \
        dafl_params other = p;                      \
        other.field = (value);                      \
        assert_encodes_otherwise(&other, &part, w); \
    } while (0)

static void every_parameter_is_in_the_bytes(void **state)
{
    dafl_params p = params();
    dafl_participation part = {.permille = 300, .consistent = true}, share;
    dafl_writer bytes = encoded(&p, &part), *w = &bytes;

    (void)state;
    CHANGED(method, DAFL_METHOD_AFL);
    CHANGED(features, 8);
    CHANGED(width, 13);
    CHANGED(hidden, 13);
    CHANGED(classes, 5);
    CHANGED(layers, 4);
    CHANGED(activation, DAFL_ACT_RELU);
    CHANGED(lambda, nextafter(p.lambda, 1));
    CHANGED(gamma, nextafter(p.gamma, 1));
    CHANGED(seed.b[31], 1);
    CHANGED(schedule, DAFL_SCHEDULE_FULL);
    CHANGED(ablate, DAFL_ABLATE_SKIP);
    share = part;
    share.permille = 301;
    assert_encodes_otherwise(&p, &share, w);
    share = part;
    share.consistent = false;
    assert_encodes_otherwise(&p, &share, w);
    dafl_writer_drop(&bytes);
}

static void params_that_are_read_are_written_alike(void **state)
{
    (void)state;
    for (size_t i = 0; i < 20 * VARIANTS; i++) {
        dafl_params p = variant(i % VARIANTS), got = {.contract = p.contract};
        dafl_participation part = {(uint16_t)random_size(1, 1000),
                                   random_size(0, 1)},
                           share;
        dafl_writer w, again;

        p.activation = (dafl_activation)random_size(0, DAFL_ACT_COUNT - 1);
        for (size_t j = 0; j < sizeof p.seed.b; j++)
            p.seed.b[j] = (uint8_t)random_u64();
        p.contract.w = got.contract.w = 64; /* wider than it need be */
        w = encoded(&p, &part);
        assert_ok(
            dafl_get_deep_params(&got, &share, dafl_writer_bytes(&w), NULL));
        assert_int_equal(got.contract.w, 64);
        assert_int_equal(got.layers, p.layers);
        assert_int_equal(share.permille, part.permille);
        again = encoded(&got, &share);
        assert_int_equal(w.len, again.len);
        assert_memory_equal(w.ptr, again.ptr, w.len);
        dafl_writer_drop(&again);
        dafl_writer_drop(&w);
    }
}

/* Any bit: refused, or other params that are written as just those bytes. */
static void params_of_other_bytes_are_refused(void **state)
{
    size_t refused = 0;

    (void)state;
    for (size_t i = 0; i < VARIANTS; i++) {
        dafl_params p = variant(i), got = {.contract = p.contract};
        dafl_participation share;
        dafl_writer w = encoded(&p, &everyone);
        dafl_bytes bytes = dafl_writer_bytes(&w);
        dafl_why why = {""};

        for (size_t len = 0; len < bytes.len; len++)
            assert_int_equal(dafl_get_deep_params(&got, &share,
                                                  (dafl_bytes){bytes.ptr, len},
                                                  &why),
                             DAFL_ERR_INPUT);
        assert_says(&why, "malformed");
        dafl_put_u8(&w, 0);
        assert_int_equal(
            dafl_get_deep_params(&got, &share, dafl_writer_bytes(&w), &why),
            DAFL_ERR_INPUT);
        bytes = (dafl_bytes){w.ptr, w.len - 1};
        for (size_t bit = 0; bit < 8 * bytes.len; bit++) {
            w.ptr[bit / 8] ^= (uint8_t)(1u << bit % 8);
            why.text[0] = '\0';
            if (dafl_get_deep_params(&got, &share, bytes, &why) == DAFL_OK) {
                dafl_writer again = encoded(&got, &share);

                assert_int_equal(again.len, bytes.len);
                assert_memory_equal(again.ptr, bytes.ptr, bytes.len);
                dafl_writer_drop(&again);
            } else {
                assert_string_not_equal(why.text, "");
                refused++;
            }
            w.ptr[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        dafl_writer_drop(&w);
    }
    assert_true(refused > 100);
}

static void params_out_of_range_are_refused(void **state)
{
    static const struct {
        size_t offset; /* of a byte or a double */
        double value;
        bool number;
    } bad[] = {
        {0, 2, false},   /* method */
        {21, 7, false},  /* activation */
        {70, 2, false},  /* schedule */
        {71, 5, false},  /* ablation */
        {74, 2, false},  /* consistent */
        {22, NAN, true}, /* lambda */
        {22, -1, true},       {22, -0.0, true},
        {30, INFINITY, true}, {30, -0.0, true}, /* gamma */
    };
    dafl_params p = params(), got = {.contract = p.contract};
    dafl_participation part = {.permille = 0}, share;
    dafl_writer w = encoded(&p, &part);
    dafl_why why = {""};

    (void)state;
    assert_int_equal(w.len, 75);
    assert_int_equal(
        dafl_get_deep_params(&got, &share, dafl_writer_bytes(&w), &why),
        DAFL_ERR_INPUT);
    assert_says(&why, "choose 1 to 1000");
    for (size_t i = 0; i < COUNT(bad); i++) {
        dafl_writer_drop(&w);
        w = encoded(&p, &everyone);
        if (bad[i].number)
            put_number(w.ptr + bad[i].offset, bad[i].value);
        else
            w.ptr[bad[i].offset] = (uint8_t)bad[i].value;
        assert_int_equal(
            dafl_get_deep_params(&got, &share, dafl_writer_bytes(&w), NULL),
            DAFL_ERR_INPUT);
        assert_int_equal(got.width, 0); /* untouched */
    }
    dafl_writer_drop(&w);
    /* minus zero is written as zero */
    p.gamma = -0.0;
    w = encoded(&p, &everyone);
    assert_ok(dafl_get_deep_params(&got, &share, dafl_writer_bytes(&w), NULL));
    assert_false(signbit(got.gamma));
    dafl_writer_drop(&w);
}

/* ---- sums that cannot be true (I7) ---- */

typedef struct {
    world *w;
    dafl_question q;
    dafl_members all;
    size_t len;
    int64_t *honest, *x;
    size_t refused;
} court;

/* The altered sum is refused for this reason and nothing has changed. */
static void refuse_sum(court *c, const char *words)
{
    dafl_why why = {""};
    dafl_question next = {0};
    size_t heads = c->w->model->n_heads, blocks = c->w->model->n_blocks;

    assert_int_equal(sm->take(c->w->server, &c->q, c->x, c->len, &c->all, &why),
                     DAFL_E_SUM_INVALID);
    assert_says(&why, words);
    assert_true(sm->next(c->w->server, c->q.rank == 0, &next));
    assert_true(next.number == c->q.number && next.rank == c->q.rank);
    assert_int_equal(c->w->model->n_heads, heads);
    assert_int_equal(c->w->model->n_blocks, blocks);
    memcpy(c->x, c->honest, c->len * sizeof *c->x);
    c->refused++;
}

static void refuse_at(court *c, size_t where, int64_t value, const char *words)
{
    c->x[where] = value;
    refuse_sum(c, words);
}

/* A square of n rows at the beginning of the sum, products of two operands. */
static void refuse_squares(court *c, size_t n, int64_t most)
{
    int64_t a = c->x[0], root, most_of_three;
    size_t corner = n * (n + 1) / 2 - 1;

    refuse_at(c, 0, -1, "diagonal");
    refuse_at(c, corner, -1, "diagonal");
    refuse_at(c, corner, INT64_MIN, "diagonal");
    refuse_at(c, 0, most + 1, "diagonal");
    refuse_at(c, corner, INT64_MAX, "diagonal");
    /* the smallest entry that is too large for its diagonal */
    root = (int64_t)sqrt((double)a * (double)c->x[n]);
    while (root * root > a * c->x[n])
        root--;
    while (root * root <= a * c->x[n])
        root++;
    refuse_at(c, 1, root, "larger than its diagonal");
    refuse_at(c, 1, -root, "larger than its diagonal");
    refuse_at(c, 1, INT64_MIN, "larger than its diagonal");
    refuse_at(c, corner - 1, INT64_MAX, "larger than its diagonal");
    /* every pair is possible, and (1, 1, 1, 0 ..) G (..)' = -2.4 a is not */
    most_of_three = a > c->x[n] ? a : c->x[n];
    if (c->x[2 * n - 1] > most_of_three)
        most_of_three = c->x[2 * n - 1];
    c->x[0] = c->x[n] = c->x[2 * n - 1] = most_of_three;
    c->x[1] = c->x[2] = c->x[n + 1] = -(most_of_three / 10 * 9);
    refuse_sum(c, "negative eigenvalue");
}

/* Before every true sum, everything that can be wrong with it. */
static void refuse_all(court *c)
{
    const dafl_params *p = &c->w->p;
    const dafl_contract *k = &p->contract;
    int64_t unit = (int64_t)k->q << k->s, n_max = (int64_t)k->n_max;
    int64_t most = n_max * unit * unit;
    dafl_query query;

    dafl_deep_query(&query, p, &c->q);
    switch (query.kind) {
    case DAFL_QUERY_CENSUS:
        refuse_at(c, 0, -1, "count");
        refuse_at(c, 0, n_max + 1, "count");
        refuse_at(c, 1, -1, "count");
        refuse_at(c, 1, c->x[1] + 1, "add up");
        refuse_at(c, 0, c->x[0] + 1, "add up");
        refuse_at(c, 2, INT64_MAX, "count");
        memset(c->x, 0, c->len * sizeof *c->x);
        refuse_sum(c, "rows together");
        break;
    case DAFL_QUERY_GRAM:
        refuse_squares(c, p->width, most);
        refuse_at(c, c->len - 1, n_max * unit + 1, "beyond");
        refuse_at(c, c->len - 1, -n_max * unit - 1, "beyond");
        break;
    case DAFL_QUERY_RESIDUAL:
        refuse_squares(c, p->hidden, most);
        refuse_at(c, c->len - 1, most + 1, "beyond");
        refuse_at(c, c->len - 1, INT64_MIN, "beyond");
        break;
    case DAFL_QUERY_INCREMENT:
        refuse_at(c, 0, most + 1, "beyond");
        refuse_at(c, c->len - 1, INT64_MIN, "beyond");
        refuse_at(c, 0, most, "negative eigenvalue");
        refuse_at(c, c->len - 1, -most, "negative eigenvalue");
        break;
    case DAFL_QUERY_REPORT:
        refuse_at(c, 0, -1, "count");
        refuse_at(c, 1, n_max + 1, "count");
        refuse_at(c, 2, -1, "count");
        refuse_at(c, 2, c->x[0] + 1, "count");
        refuse_at(c, c->len - 1, c->x[1] + 1, "count");
        break;
    case DAFL_QUERY_DONE:
        break;
    }
}

static court open_court(world *w, bool plain)
{
    court c = {.w = w, .all = all_of(w->n)};

    assert_true(sm->next(w->server, plain, &c.q));
    c.len = length(w, &c.q);
    c.honest = sum_of(w, &c.q, &c.all);
    c.x = integers(c.len);
    memcpy(c.x, c.honest, c.len * sizeof *c.x);
    return c;
}

static void close_court(court *c)
{
    give(c->w, &c->q, c->honest, &c->all);
    free(c->honest);
    free(c->x);
}

static void impossible_sums_are_refused_and_change_nothing(void **state)
{
    (void)state;
    for (int plain = 0; plain < 2; plain++) {
        dafl_params p = params();
        world *w;
        dafl_model *expected;
        size_t refused = 0;

        p.schedule = plain ? DAFL_SCHEDULE_FULL : DAFL_SCHEDULE_DELTA;
        w = new_world(&p, 3);
        for (uint32_t n = 0; n < dafl_deep_questions(&p); n++) {
            court c = open_court(w, plain == 1);

            refuse_all(&c);
            refused += c.refused;
            close_court(&c);
        }
        assert_int_equal(refused,
                         7 + 5 + 12 * (1 + LAYERS) + (plain ? 12 : 4) * LAYERS);
        expected = plain_model(&p, NULL);
        assert_same_model(w->model, expected);
        dafl_model_free(&expected);
        drop_world(w);
    }
}

/* A server that has counted three rows; drop both. */
static dafl_deep_server *counted_server(dafl_model **model,
                                        const dafl_params *p)
{
    const int64_t census[] = {3, 1, 2};
    dafl_members one = all_of(1);
    dafl_deep_server *server = NULL;
    dafl_question q = {0};

    assert_ok(dafl_model_new(model, p));
    assert_ok(dafl_deep_server_new(&server, *model, &everyone, 1));
    dafl_deep_server_allow_small(server);
    assert_int_equal(sm->take(server, &q, census, 3, &one, NULL), 0);
    return server;
}

/* Three directions at equal angles, their products -1/2 of their squares, have
 * the eigenvalue 0. One unit further apart is impossible, even where lambda
 * would hide it. The directions stand around a place where the elimination goes
 * from one block of pivots to the next. */
static void a_negative_eigenvalue_is_refused_whatever_lambda_is(void **state)
{
    enum { D = 40, LEN = D * (D + 1) / 2 + 2 * D };
    static const double lambdas[] = {0, 1e-3, 1, 1000};
    static const size_t places[] = {0, 1, 30, 31, 32, 33, D - 1};
    dafl_members one = all_of(1);
    size_t tried = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(places) * COUNT(places) * COUNT(places); i++) {
        size_t of[] = {places[i % 7], places[i / 7 % 7], places[i / 49]};
        dafl_params p = params();
        dafl_model *model = NULL;
        dafl_deep_server *server;
        dafl_question q = {.number = 1};
        dafl_why why = {""};
        int64_t x[LEN] = {0}, a = (int64_t)1 << 31;

        if (!(of[0] < of[1] && of[1] < of[2]))
            continue;
        p.width = D;
        p.classes = 2;
        p.layers = 0;
        p.lambda = lambdas[tried++ % COUNT(lambdas)];
        server = counted_server(&model, &p);
        for (int beyond = 1; beyond >= 0; beyond--) {
            for (size_t r = 0; r < 3; r++)
                for (size_t k = r; k < 3; k++)
                    x[of[r] * (2 * D - of[r] + 1) / 2 + of[k] - of[r]] =
                        r == k ? a : -a / 2 - beyond;
            assert_int_equal(sm->take(server, &q, x, LEN, &one, &why),
                             beyond ? DAFL_E_SUM_INVALID : DAFL_FAULT_NONE);
            assert_says(&why, "negative eigenvalue");
        }
        dafl_deep_server_free(&server);
        dafl_model_free(&model);
    }
    assert_int_equal(tried, 35);
}

/* Products near 2^126: a bound that doubles would blur. */
static void the_bound_of_a_product_is_exact(void **state)
{
    dafl_params p = params();
    dafl_contract k = {.exact = true, .s = 24, .q = 4, .n_max = 2047};
    int64_t most = (int64_t)2047 << 52;
    const struct {
        int64_t a, b, c;
        bool possible;
    } cases[] = {
        {most, most, most, true},
        {most, -most, most, true},
        {most, most, most - 1, false},
        {most - 1, -most, most, false},
        {most, most - 1, most - 1, true},  /* m^2 - 2m + 1 <= m^2 - m */
        {most - 2, most - 1, most, false}, /* m^2 - 2m + 1 > m^2 - 2m */
        {most + 1, 0, 0, false},
        {0, 0, most, true},
        {0, 1, most, false},
        {1, 1, 1, true},
        {1, 1, 0, false},
        {0, 0, 0, true},
    };

    (void)state;
    p.width = p.classes = 2;
    p.layers = 0;
    p.contract = k;
    assert_ok(dafl_params_check(&p, NULL));
    for (size_t i = 0; i < COUNT(cases); i++) {
        dafl_members one = all_of(1);
        dafl_model *model = NULL;
        dafl_deep_server *server = counted_server(&model, &p);
        int64_t gram[7] = {cases[i].a, cases[i].b, cases[i].c};
        dafl_question q = {.number = 1};
        dafl_fault fault;

        fault = sm->take(server, &q, gram, 7, &one, NULL);
        assert_int_equal(fault, cases[i].possible ? DAFL_FAULT_NONE
                                                  : DAFL_E_SUM_INVALID);
        assert_int_equal(model->n_heads, cases[i].possible);
        dafl_deep_server_free(&server);
        dafl_model_free(&model);
    }
}

/* No false alarm: more columns than rows, dead units, no regularisation, coarse
 * grids. (The other cases accept honest sums too.) */
static void true_sums_are_never_refused(void **state)
{
    size_t carried = 0;

    (void)state;
    for (size_t i = 0; i < 40; i++) {
        dafl_params p = params();
        dafl_members all;
        dafl_question q;
        world *w;

        p.width = i % 4 == 0 ? ROWS + 20 : random_size(1, 40);
        p.hidden = random_size(1, 70);
        p.activation = (dafl_activation)random_size(0, DAFL_ACT_COUNT - 1);
        p.lambda = (double)random_size(0, 2);
        p.gamma = p.lambda + 0.01;
        p.contract.s = (unsigned)random_size(8, 14);
        p.contract.q = 16;
        assert_ok(dafl_params_check(&p, NULL));
        w = new_world(&p, random_size(1, 4));
        all = all_of(w->n);
        while (sm->next(w->server, false, &q)) {
            int64_t *sum = sum_or_none(w, &q, &all);

            if (sum == NULL) /* not even 16 is enough for so bad a fit */
                break;
            give(w, &q, sum, &all);
            free(sum);
            carried += q.rank > 0;
        }
        drop_world(w);
    }
    assert_true(carried > 60);
}

#ifdef DAFL_WEAKEN
/* The control: without the judgement a poisoned sum becomes the model. */
static void without_the_judgement_a_poisoned_sum_is_taken(void **state)
{
    dafl_params p = params();
    dafl_model *expected;
    world *w = new_world(&p, 2);
    court c;

    (void)state;
    assert_true(step(w, false));
    c = open_court(w, false);
    c.x[0] = -c.x[0];
    dafl_weakened = DAFL_WEAK_SANITY;
    assert_int_equal(sm->take(w->server, &c.q, c.x, c.len, &c.all, NULL), 0);
    dafl_weakened = DAFL_WEAK_NOTHING;
    assert_int_equal(w->model->n_heads, 1);
    expected = plain_model(&p, NULL);
    assert_false(same_doubles(w->model->heads[0].w, expected->heads[0].w,
                              p.width * p.classes));
    dafl_model_free(&expected);
    free(c.honest);
    free(c.x);
    drop_world(w);
}
#endif

/* ---- cohorts ---- */

static void an_increment_is_for_the_cohort_of_its_ties(void **state)
{
    dafl_params p = params();
    world *w = new_world(&p, 3);
    dafl_members all = all_of(3), two = all, four = all_of(4);
    dafl_question q;
    int64_t *sum;

    (void)state;
    dafl_members_remove(&two, 2);
    for (int i = 0; i < 3; i++)
        assert_true(step(w, false));
    assert_true(sm->next(w->server, false, &q));
    assert_int_equal(q.rank, p.classes);
    sum = sum_of(w, &q, &two);
    assert_int_equal(sm->take(w->server, &q, sum, length(w, &q), &two, NULL),
                     DAFL_E_COHORT);
    assert_int_equal(sm->take(w->server, &q, sum, length(w, &q), &four, NULL),
                     DAFL_E_COHORT);
    free(sum);
    /* they can give the whole */
    assert_true(sm->next(w->server, true, &q));
    assert_int_equal(q.rank, 0);
    sum = sum_of(w, &q, &two);
    give(w, &q, sum, &two);
    free(sum);
    /* A residual over another cohort than that of G: nobody could give an
     * increment, and it is not asked for. */
    assert_true(step(w, false));
    assert_true(sm->next(w->server, false, &q));
    assert_int_equal(q.rank, 0);
    assert_true(step(w, false));
    drop_world(w);
}

static void only_the_next_question_is_taken(void **state)
{
    dafl_params p = params();
    world *w = new_world(&p, 1);
    dafl_members all = all_of(1);
    dafl_question q;

    (void)state;
    while (sm->next(w->server, false, &q)) {
        size_t len = length(w, &q);
        int64_t *zeros = integers(4096);

        for (uint32_t n = 0; n <= dafl_deep_questions(&p); n++)
            for (uint32_t rank = 0; rank <= 5; rank++) {
                dafl_question other = {n, rank};
                dafl_shape shape = {.len = len};

                if (n == q.number && (rank == 0 || rank == q.rank))
                    continue;
                (void)dafl_deep_shape(&shape, w->model, &other);
                assert_int_equal(sm->take(w->server, &other, zeros,
                                          (size_t)shape.len, &all, NULL),
                                 DAFL_E_STATE);
            }
        assert_int_equal(sm->take(w->server, &q, zeros, len - 1, &all, NULL),
                         DAFL_E_STATE);
        assert_int_equal(sm->take(w->server, &q, zeros, len + 1, &all, NULL),
                         DAFL_E_STATE);
        free(zeros);
        assert_true(step(w, false));
        /* a segment that is not there yet */
        if (q.number + 2 < dafl_deep_questions(&p)) {
            dafl_segment segment;
            dafl_writer bytes = {0};

            if (q.number > 0)
                assert_int_equal(
                    sm->segment(w->server, q.number + 2, &segment, &bytes),
                    DAFL_E_MODEL);
            dafl_writer_drop(&bytes);
        }
    }
    drop_world(w);
}

/* Nothing is learnt from sums of zeros: W = 0 has rank 0, its increment would
 * be empty, so the full sum is asked for. */
static void after_a_classifier_of_rank_zero_full_sums_are_asked(void **state)
{
    dafl_params p = params();
    world *w = new_world(&p, 2);
    dafl_members all = all_of(2);
    dafl_question q;

    (void)state;
    assert_true(step(w, false));
    while (sm->next(w->server, false, &q)) {
        int64_t *zeros = integers(length(w, &q));

        assert_int_equal(q.rank, 0);
        for (size_t k = 0; k < 2; k++)
            bring_up(w, w->clients[k], &w->followed[k], q.number);
        give(w, &q, zeros, &all);
        free(zeros);
    }
    for (size_t t = 0; t <= p.layers; t++)
        assert_int_equal(w->model->heads[t].rank, 0);
    q = (dafl_question){.number = dafl_deep_questions(&p) - 1};
    free(sum_of(w, &q, &all)); /* the clients can follow such a model */
    drop_world(w);
}

#define PARTIES 24

/* PARTIES clients in cells of `size`. */
static dafl_roster *make_roster(size_t size)
{
    dafl_party *p = calloc(PARTIES + 1, sizeof *p);
    dafl_roster *roster = calloc(1, sizeof *roster);

    assert_non_null(p);
    assert_non_null(roster);
    for (size_t i = 0; i <= PARTIES; i++) {
        uint8_t seed[64] = {(uint8_t)(i + 1)};
        dafl_secret_identity id;
        char name[16];

        seed[33] = (uint8_t)(i + 1); /* X25519 drops bits of byte 32 */
        (void)snprintf(name, sizeof name, "p%zu", i);
        assert_ok(dafl_identity_new_derand(&id, name, seed, NULL));
        p[i].id = id.public;
        p[i].role = i < PARTIES ? DAFL_ROLE_CLIENT : DAFL_ROLE_SERVER;
        p[i].cell = (uint16_t)(i < PARTIES ? i / size : DAFL_NO_CELL);
    }
    assert_ok(dafl_roster_make(roster, p, PARTIES + 1, NULL));
    free(p);
    return roster;
}

/* What agents/federation.c draws: `cohort` sites of n. */
static dafl_members federation_draw(const dafl_params *p, double participation,
                                    bool consistent, const dafl_query *query)
{
    size_t n = (size_t)(participation * (double)PARTIES + 0.5);
    bool all = query->kind == DAFL_QUERY_CENSUS ||
               query->kind == DAFL_QUERY_REPORT || n >= PARTIES;
    bool second = !consistent && query->kind == DAFL_QUERY_RESIDUAL;
    dafl_members m = dafl_members_none(PARTIES);
    uint32_t k[PARTIES];
    dafl_draw draw;

    for (uint32_t i = 0; i < PARTIES; i++)
        k[i] = i;
    dafl_draw_init(&draw, &p->seed, DAFL_STREAM_PARTICIPATION,
                   2 * query->layer + (second ? 1 : 0));
    dafl_draw_shuffle(&draw, k, PARTIES);
    for (size_t i = 0; i < (all ? PARTIES : n < 1 ? 1 : n); i++)
        dafl_members_add(&m, k[i]);
    return m;
}

static void whole_cells_are_drawn_as_the_federation_draws_sites(void **state)
{
    static const size_t sizes[] = {1, 2, 3, 5, 8, 24};
    static const uint16_t shares[] = {1, 20, 145, 300, 333, 500, 999, 1000};

    (void)state;
    for (size_t i = 0; i < COUNT(sizes) * COUNT(shares) * 2; i++) {
        size_t size = sizes[i % COUNT(sizes)];
        dafl_participation part = {shares[i / COUNT(sizes) % COUNT(shares)],
                                   i >= COUNT(sizes) * COUNT(shares)};
        dafl_roster *roster = make_roster(size);
        dafl_params p = params();
        dafl_model *model = NULL;
        dafl_deep_server *server = NULL;
        double exact = part.permille * (double)roster->n_cells / 1000;

        assert_ok(dafl_model_new(&model, &p));
        assert_ok(dafl_deep_server_new(&server, model, &part, PARTIES));
        for (uint32_t n = 0; n < dafl_deep_questions(&p); n++) {
            dafl_question q = {.number = n};
            dafl_members cohort = dafl_roster_clients(roster), some = cohort;
            size_t cells = 0;
            dafl_query query;

            dafl_deep_query(&query, &p, &q);
            sm->choose(server, &q, roster, &cohort);
            assert_true(dafl_roster_whole_cells(roster, &cohort));
            for (uint16_t c = 0; c < roster->n_cells; c++) {
                dafl_members cell = dafl_roster_cell(roster, c);

                cells += dafl_members_within(&cell, &cohort);
            }
            if (query.kind == DAFL_QUERY_CENSUS ||
                query.kind == DAFL_QUERY_REPORT)
                assert_int_equal(cells, roster->n_cells);
            else if (exact < 1)
                assert_int_equal(cells, 1);
            else
                assert_true(fabs((double)cells - exact) <= 0.5);
            if (size == 1) {
                dafl_members drawn = federation_draw(&p, part.permille / 1000.0,
                                                     part.consistent, &query);

                assert_true(dafl_members_equal(&cohort, &drawn));
            }
            /* narrowed, never widened */
            for (size_t k = 0; k < PARTIES; k++)
                if (random_size(0, 1) == 0)
                    dafl_members_remove(&some, k);
            {
                dafl_members before = some;

                sm->choose(server, &q, roster, &some);
                assert_true(dafl_members_within(&some, &before));
                assert_true(dafl_members_within(&some, &cohort));
                before = dafl_members_minus(&before, &cohort);
                assert_false(dafl_members_within(&before, &some) &&
                             dafl_members_count(&before) > 0);
            }
        }
        dafl_deep_server_free(&server);
        dafl_model_free(&model);
        free(roster);
    }
}

static void a_run_without_a_grid_is_not_for_the_protocol(void **state)
{
    dafl_params p = params();
    dafl_deep_client *c = NULL;
    dafl_deep_server *s = NULL;
    dafl_model *model = NULL;
    plot none = {0};

    (void)state;
    p.contract.exact = false;
    assert_ok(dafl_model_new(&model, &p));
    assert_int_equal(dafl_deep_client_new(&c, &p, found, NULL, &none, NULL),
                     DAFL_ERR_ARG);
    assert_int_equal(dafl_deep_server_new(&s, model, &everyone, 1),
                     DAFL_ERR_ARG);
    dafl_model_free(&model);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(questions_are_numbered_in_the_order_they_are_asked),
        CASE(the_model_is_that_of_one_site_with_all_rows),
        CASE(held_out_rows_follow_the_model_and_are_counted_only),
        CASE(one_that_missed_questions_answers_like_the_others),
        CASE(a_question_may_be_asked_again),
        CASE(increments_and_full_sums_give_the_same_model),
        CASE(only_the_newest_question_is_answered),
        CASE(one_that_starts_over_answers_as_before),
        CASE(a_malformed_segment_is_refused_and_forgotten),
        CASE(a_model_that_leaves_the_contract_gets_no_answer),
        CASE(just_beyond_the_contract_is_beyond),
        CASE(every_parameter_is_in_the_bytes),
        CASE(params_that_are_read_are_written_alike),
        CASE(params_of_other_bytes_are_refused),
        CASE(params_out_of_range_are_refused),
        CASE(impossible_sums_are_refused_and_change_nothing),
        CASE(a_negative_eigenvalue_is_refused_whatever_lambda_is),
        CASE(the_bound_of_a_product_is_exact),
        CASE(true_sums_are_never_refused),
#ifdef DAFL_WEAKEN
        CASE(without_the_judgement_a_poisoned_sum_is_taken),
#endif
        CASE(an_increment_is_for_the_cohort_of_its_ties),
        CASE(only_the_next_question_is_taken),
        CASE(after_a_classifier_of_rank_zero_full_sums_are_asked),
        CASE(whole_cells_are_drawn_as_the_federation_draws_sites),
        CASE(a_run_without_a_grid_is_not_for_the_protocol),
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
