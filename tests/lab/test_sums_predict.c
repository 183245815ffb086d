/* SPDX-License-Identifier: Apache-2.0 */
/* L9: sums that no linear identity ties together predict each other all the
 * same. The server is honest. From G_0 and H_0 over everybody it knows mean and
 * covariance of the pre-activations Phi_0 B_0 + b_0; if these were Gaussian,
 * Pi_0 would follow (Mehler's formula), and they nearly are. Pi_0 over a cohort
 * without somebody, taken off the prediction, leaves who is missing, and an
 * error that is small beside it.
 *
 * Rows are dealt label by label. The digits go through the machines. The real
 * features (DEEPAFL_DATA) are summed by the same sites without machines, whose
 * setup of 20 clients would add nothing: the opened sum is the plain sum (I1).
 *
 * With cells one estimate serves all members of a cell: it does not change when
 * the cell's rows are dealt anew. So it is as often nearer to one member than
 * to another as chance has it, and over the members the correlations cancel.
 * One at a time they do not vanish: deviations of few classes lie in few
 * directions. */
#include "tests/lab/curious.h"
#include "tests/lab/figures.h"
#include "tests/lab/predict.h"
#include "tests/sites.h"

#define CELL_MOST 4

/* What an attack is made from, and what it is compared with. */
typedef struct {
    size_t f;         /* Pi is f x f */
    double *pred;     /* Pi over everybody, predicted */
    double share;     /* of the rows, that a client has */
    double *all;      /* the true one */
    size_t cell;      /* members */
    double *cell_sum; /* Pi over the cell, and over each member */
    double *members[CELL_MOST];
} stage;

/* The attack: by how much those who are missing from `without`, who have so
 * many clients' rows, differ from the average. To be freed. */
static double *estimate(const stage *s, const double *without, double clients)
{
    double *e = doubles(s->f * s->f);

    memcpy(e, s->pred, s->f * s->f * sizeof *e);
    take_off(e, without, 1, s->f * s->f);
    take_off(e, s->pred, clients * s->share, s->f * s->f);
    return e;
}

/* ---- how good it is ---- */

/* Correlation of an estimate with x - scale * from. */
static double agreement(const stage *s, const double *e, const double *x,
                        const double *from, double scale)
{
    size_t n = s->f * s->f;
    double *deviation = doubles(n), r;

    memcpy(deviation, x, n * sizeof *x);
    take_off(deviation, from, scale, n);
    r = correlation(e, deviation, n);
    free(deviation);
    return r;
}

/* Each member of the cell missing alone: without[u] is the sum over the
 * others. */
static void judge_clients(const stage *s, double *const *without,
                          const char *name)
{
    double least = 1, in_cell = 0;

    for (size_t u = 0; u < s->cell; u++) {
        double *e = estimate(s, without[u], 1);
        least = fmin(least, agreement(s, e, s->members[u], s->all, s->share));
        in_cell +=
            agreement(s, e, s->members[u], s->cell_sum, 1.0 / (double)s->cell) /
            (double)s->cell;
        free(e);
    }
    print_message("L9 %s, g = 1: Pi_0 predicted to %.2e; correlation with a "
                  "client's deviation from the average at least %.2f, from its "
                  "cell %.2f in the mean\n",
                  name, off_by(s->pred, s->all, s->f * s->f), least, in_cell);
    assert_true(least > 0.5);
    assert_true(in_cell > 0.4);
}

/* The whole cell missing. */
static void judge_cell(const stage *s, const double *without, const char *name)
{
    double *e = estimate(s, without, (double)s->cell);
    double whole =
        agreement(s, e, s->cell_sum, s->all, (double)s->cell * s->share);
    double mean = 0, most = 0;

    for (size_t u = 0; u < s->cell; u++) {
        double r =
            agreement(s, e, s->members[u], s->cell_sum, 1.0 / (double)s->cell);
        mean += r / (double)s->cell;
        most = fmax(most, fabs(r));
    }
    print_message("L9 %s, cells of %zu: correlation with the cell's deviation "
                  "%.2f; with its members' from the cell %.2f in the mean, "
                  "each within %.2f\n",
                  name, s->cell, whole, mean, most);
    assert_true(whole > 0.5);
    assert_true(fabs(mean) < 0.25);
    free(e);
}

static void drop_stage(stage *s)
{
    free(s->pred);
    free(s->all);
    free(s->cell_sum);
    for (size_t u = 0; u < s->cell; u++)
        free(s->members[u]);
}

/* Rows in equal lots, label by label, in a random order; some are left over. */
static uint32_t *skewed(const dafl_data *data, size_t k)
{
    size_t lot = data->n / k;
    uint32_t *sorted = calloc(data->n, sizeof *sorted);
    uint32_t *rows = calloc(data->n, sizeof *rows);
    uint32_t *order = calloc(k, sizeof *order);

    assert_true(sorted != NULL && rows != NULL && order != NULL);
    by_label(sorted, data);
    for (uint32_t u = 0; u < k; u++)
        order[u] = u;
    shuffle(order, k);
    for (size_t u = 0; u < k; u++)
        memcpy(rows + u * lot, sorted + order[u] * lot, lot * sizeof *rows);
    free(order);
    free(sorted);
    return rows;
}

static dafl_params params(size_t features, size_t width, size_t classes)
{
    dafl_params p = {.features = features,
                     .width = width,
                     .hidden = width,
                     .classes = classes,
                     .layers = 1,
                     .lambda = 1,
                     .gamma = 0.01,
                     .contract = DAFL_CONTRACT_DEFAULT};

    p.seed.b[0] = (uint8_t)random_u64();
    assert_ok(dafl_params_check(&p, NULL));
    return p;
}

/* ---- digits, through the machines ---- */

#define K 12
#define CELL 3

static dafl_members clients(size_t from, size_t to)
{
    dafl_members m = dafl_members_none(K);

    for (size_t u = from; u < to; u++)
        dafl_members_add(&m, u);
    return m;
}

/* Question 2 is Pi_0: the client leaves before it uploads that. */
static void train(curious *c, uint16_t cell_size, uint16_t missing)
{
    lab *l = curious_lab(c, cell_size, random_u64());

    lab_leave(l, missing, 2, LAB_AT_CAST, LAB_NEXT_SLOT);
    lab_check_done(l);
    assert_int_equal(dafl_members_count(&c->sums[2].cohort), K - cell_size);
    lab_free(&l);
}

/* The first cell is the one that is attacked. */
static stage stage_of(const curious *c)
{
    stage s = {.f = c->p.hidden, .share = 1.0 / K, .cell = CELL};
    double *n = curious_part(c, 0, 0), *g = curious_part(c, 1, 0);
    double *ht = curious_part(c, 1, 1);
    dafl_members set = clients(0, K);
    dafl_projection b;

    assert_ok(dafl_model_projection(c->model, &b, 1));
    s.pred = predict_pi(&c->p, &b, *n, g, ht);
    dafl_projection_drop(&b);
    free(ht);
    free(g);
    free(n);
    s.all = curious_truth(c, 2, 0, &set);
    set = clients(0, CELL);
    s.cell_sum = curious_truth(c, 2, 0, &set);
    for (size_t u = 0; u < CELL; u++) {
        set = clients(u, u + 1);
        s.members[u] = curious_truth(c, 2, 0, &set);
    }
    return s;
}

static void digits_are_predicted_and_cells_hide_their_members(void **state)
{
    curious c = {.k = K}, again;
    double *without[CELL], *cell;
    uint32_t *rows;
    dafl_data data;
    stage s;

    (void)state;
    assert_ok(dafl_data_open(&data, DIGITS "/train_features.npy",
                             DIGITS "/train_labels.npy", 10, NULL));
    assert_ok(dafl_pool_new(&c.pool, 1));
    rows = skewed(&data, K);
    c.data = &data;
    c.rows = rows;
    c.p = params(data.x.cols, 64, 10);
    for (size_t u = 0; u <= K; u++)
        c.first[u] = u * (data.n / K);

    for (uint16_t u = 0; u < CELL; u++) {
        train(&c, 1, u);
        without[u] = curious_part(&c, 2, 0);
    }
    s = stage_of(&c); /* G_0 and H_0 were over everybody each time */
    judge_clients(&s, without, "digits");

    train(&c, CELL, 0);
    cell = curious_part(&c, 2, 0);
    judge_cell(&s, cell, "digits");

    /* The estimate is the same whoever in the cell has which rows. */
    again = c;
    again.n_sums = 0;
    again.model = NULL;
    deal_again(rows, again.first, 0, CELL);
    train(&again, CELL, 0);
    assert_true(curious_same(&c, &again));

    for (size_t u = 0; u < CELL; u++)
        free(without[u]);
    free(cell);
    drop_stage(&s);
    curious_drop(&again);
    curious_drop(&c);
    dafl_pool_free(&c.pool);
    dafl_data_close(&data);
    free(rows);
}

/* ---- real features ---- */

#define REAL_K 20
#define REAL_CELL 4

/* Of DEEPAFL_DATA, or the case is skipped. */
static dafl_data open_real(void)
{
    const char *root = getenv("DEEPAFL_DATA");
    char x[1024], y[1024];
    dafl_data data;
    dafl_why why = {""};

    if (root == NULL) {
        print_message("skipped: set DEEPAFL_DATA to the directory that holds "
                      "data/cifar100_train_features.npy\n");
        skip();
    }
    (void)snprintf(x, sizeof x, "%s/data/cifar100_train_features.npy", root);
    (void)snprintf(y, sizeof y, "%s/data/cifar100_train_labels.npy", root);
    if (dafl_data_open(&data, x, y, 100, &why) != DAFL_OK)
        fail_msg("%s", why.text);
    return data;
}

/* Every site's answer, [0 .. cell) the members', then that of all others; asked
 * and taken as an honest server does. */
static void ask_sites(crew *c, dafl_trainer *trainer, dafl_query_kind kind,
                      dafl_sum *answers)
{
    dafl_projection projection;
    dafl_query query;
    dafl_set everybody;
    dafl_sum total;

    assert_ok(dafl_set_init(&everybody, c->n));
    for (size_t u = 0; u < c->n; u++)
        dafl_set_add(&everybody, u);
    dafl_trainer_next(trainer, &query, &everybody);
    assert_int_equal(query.kind, kind);
    projection = projection_for(c->model, &query);
    total = empty_sum(&c->model->params, &query);
    for (size_t u = 0; u < c->n; u++) {
        answers[u] = empty_sum(&c->model->params, &query);
        assert_ok(dafl_site_answer(c->sites[u], c->model, &query, &projection,
                                   &answers[u], NULL));
        dafl_sum_add(&total, &answers[u]);
    }
    answers[c->n] = total;
    assert_ok(dafl_trainer_take(trainer, &query, &total, &everybody, NULL));
    dafl_projection_drop(&projection);
    dafl_set_drop(&everybody);
}

static void drop_answers(const crew *c, dafl_sum *answers)
{
    for (size_t u = 0; u <= c->n; u++)
        dafl_sum_drop(&answers[u]);
}

static double *part(const dafl_params *p, dafl_query_kind kind,
                    const dafl_sum *sum, unsigned number)
{
    dafl_query query = {.kind = kind};
    dafl_layout layout;
    double *x;

    dafl_query_layout(&layout, p, &query);
    x = doubles(layout.parts[number].rows * layout.parts[number].cols);
    dafl_sum_get(sum, &layout.parts[number], x);
    return x;
}

static crew make_sites(dafl_model *model, dafl_pool *pool,
                       const dafl_data *data, const uint32_t *rows)
{
    crew c = {.n = REAL_CELL + 1, .model = model};
    size_t lot = data->n / REAL_K;
    dafl_projection first;

    assert_ok(dafl_model_projection(model, &first, 0));
    for (size_t u = 0; u < c.n; u++)
        assert_ok(dafl_site_new(
            &c.sites[u], &model->params, pool, data, rows + u * lot,
            u < REAL_CELL ? lot : (REAL_K - REAL_CELL) * lot, &first, NULL));
    dafl_projection_drop(&first);
    return c;
}

static void
real_features_are_predicted_and_cells_hide_their_members(void **state)
{
    dafl_data data = open_real();
    dafl_params p = params(data.x.cols, 512, 100);
    stage s = {.f = p.hidden, .share = 1.0 / REAL_K, .cell = REAL_CELL};
    dafl_sum census[REAL_CELL + 2], gram[REAL_CELL + 2], pi[REAL_CELL + 2];
    double *without[REAL_CELL], *cell, *g, *ht;
    dafl_pool *pool = NULL;
    dafl_model *model = NULL;
    dafl_trainer *trainer = NULL;
    uint32_t *rows = skewed(&data, REAL_K);
    dafl_projection b;
    crew c;

    (void)state;
    assert_ok(dafl_pool_new(&pool, 1));
    assert_ok(dafl_model_new(&model, &p));
    assert_ok(dafl_trainer_new(&trainer, model, REAL_CELL + 1));
    c = make_sites(model, pool, &data, rows);
    ask_sites(&c, trainer, DAFL_QUERY_CENSUS, census);
    ask_sites(&c, trainer, DAFL_QUERY_GRAM, gram);
    ask_sites(&c, trainer, DAFL_QUERY_RESIDUAL, pi);

    g = part(&p, DAFL_QUERY_GRAM, &gram[c.n], 0);
    ht = part(&p, DAFL_QUERY_GRAM, &gram[c.n], 1);
    assert_ok(dafl_model_projection(model, &b, 1));
    s.pred = predict_pi(&p, &b, (double)census[c.n].i[0], g, ht);
    dafl_projection_drop(&b);
    s.all = part(&p, DAFL_QUERY_RESIDUAL, &pi[c.n], 0);
    cell = part(&p, DAFL_QUERY_RESIDUAL, &pi[REAL_CELL], 0);
    s.cell_sum = doubles(s.f * s.f);
    for (size_t u = 0; u < REAL_CELL; u++) {
        s.members[u] = part(&p, DAFL_QUERY_RESIDUAL, &pi[u], 0);
        take_off(s.cell_sum, s.members[u], -1, s.f * s.f);
        without[u] = part(&p, DAFL_QUERY_RESIDUAL, &pi[c.n], 0);
        take_off(without[u], s.members[u], 1, s.f * s.f);
    }
    judge_clients(&s, without, "CIFAR-100");
    judge_cell(&s, cell, "CIFAR-100");

    for (size_t u = 0; u < REAL_CELL; u++)
        free(without[u]);
    free(cell);
    free(ht);
    free(g);
    drop_stage(&s);
    drop_answers(&c, pi);
    drop_answers(&c, gram);
    drop_answers(&c, census);
    drop_crew(&c);
    dafl_trainer_free(&trainer);
    dafl_model_free(&model);
    dafl_pool_free(&pool);
    dafl_data_close(&data);
    free(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digits_are_predicted_and_cells_hide_their_members),
        cmocka_unit_test(
            real_features_are_predicted_and_cells_hide_their_members),
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
