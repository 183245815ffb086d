/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "tests/check.h"
#include "lib/file.h"
#include "lib/model.h"
#include "lib/safetensors.h"

enum { LAYERS = 2, MOST = 24 };

static dafl_params params(void)
{
    dafl_params p = {.features = 3,
                     .width = 5,
                     .hidden = 6,
                     .classes = 4,
                     .layers = LAYERS,
                     .activation = DAFL_ACT_RELU,
                     .lambda = 0.1,
                     .gamma = 1.0 / 3,
                     .seed = {{9, 8, 7}},
                     .contract = DAFL_CONTRACT_DEFAULT};

    assert_ok(dafl_params_check(&p, NULL));
    return p;
}

/* Random heads and blocks; the rank of layer t is 3 - t, so the last is 1. */
static dafl_model *random_model(const dafl_params *p)
{
    dafl_model *model = NULL;
    double x[100], y[100];

    assert_ok(dafl_model_new(&model, p));
    for (size_t t = 0; t <= p->layers; t++) {
        random_fill(x, COUNT(x));
        random_fill(y, COUNT(y));
        assert_ok(dafl_model_add_head(model, x, y, 3 - t));
        if (t < p->layers)
            assert_ok(dafl_model_add_block(
                model, y, p->ablate == DAFL_ABLATE_OMEGA ? 0 : 3 - t));
    }
    return model;
}

static dafl_map map_of(const char *path)
{
    dafl_map map;

    assert_ok(dafl_map_open(&map, path, NULL));
    return map;
}

/* Save, load and save again: equal files, equal models. */
static void assert_survives(const dafl_model *model)
{
    dafl_model *again = NULL;
    dafl_map a, b;
    dafl_why why = {""};

    assert_ok(dafl_model_save(model, at("a"), NULL));
    if (dafl_model_load(&again, at("a"), &why) != DAFL_OK)
        fail_msg("%s", why.text);
    assert_ok(dafl_model_save(again, at("b"), NULL));
    a = map_of(at("a"));
    b = map_of(at("b"));
    assert_int_equal(a.bytes.len, b.bytes.len);
    assert_memory_equal(a.bytes.ptr, b.bytes.ptr, a.bytes.len);
    dafl_map_close(&b);
    dafl_map_close(&a);
    assert_int_equal(again->n_heads, model->n_heads);
    assert_int_equal(again->n_blocks, model->n_blocks);
    assert_true(again->params.lambda == model->params.lambda &&
                again->params.gamma == model->params.gamma);
    assert_memory_equal(&again->params.seed, &model->params.seed,
                        sizeof model->params.seed);
    assert_int_equal(again->params.activation, model->params.activation);
    assert_int_equal(again->params.contract.w, model->params.contract.w);
    for (size_t t = 0; t < model->n_heads; t++)
        assert_memory_equal(again->heads[t].w, model->heads[t].w,
                            model->params.width * model->params.classes *
                                sizeof(double));
    dafl_model_free(&again);
    assert_null(again);
}

static void models_survive_a_round_trip(void **state)
{
    (void)state;
    for (int act = 0; act < DAFL_ACT_COUNT; act++) {
        dafl_params p = params();
        dafl_model *model;

        p.activation = (dafl_activation)act;
        p.ablate = (dafl_ablation)(act % (DAFL_ABLATE_OMEGA + 1));
        p.schedule = act % 2 == 0 ? DAFL_SCHEDULE_DELTA : DAFL_SCHEDULE_FULL;
        p.hidden = p.width;
        model = random_model(&p);
        assert_survives(model);
        dafl_model_free(&model);
    }
}

static void heads_of_rank_zero_and_afl_survive_too(void **state)
{
    dafl_params p = params();
    dafl_model *model = NULL;
    double x[16] = {0};

    (void)state;
    assert_ok(dafl_model_new(&model, &p));
    for (size_t t = 0; t <= LAYERS; t++) {
        assert_ok(dafl_model_add_head(model, NULL, NULL, 0));
        for (size_t i = 0; i < p.width * p.classes; i++)
            assert_true(model->heads[t].w[i] == 0);
        if (t < LAYERS)
            assert_ok(dafl_model_add_block(model, NULL, 0));
    }
    assert_survives(model);
    dafl_model_free(&model);
    p.method = DAFL_METHOD_AFL;
    assert_ok(dafl_params_check(&p, NULL));
    assert_ok(dafl_model_new(&model, &p));
    random_fill(x, COUNT(x));
    assert_ok(dafl_model_add_head(model, x, x, 3));
    assert_survives(model);
    dafl_model_free(&model);
    dafl_model_free(&model);
}

static void own_projections_are_stored(void **state)
{
    dafl_params p = params(), other = p;
    dafl_model *model = random_model(&p), *again = NULL;

    (void)state;
    other.seed.b[0] = 77;
    for (size_t k = 0; k <= LAYERS; k++) {
        dafl_projection m;

        assert_ok(dafl_projection_draw(&m, &other, k));
        assert_ok(dafl_projection_write(&m, dir, k, NULL));
        dafl_projection_drop(&m);
    }
    assert_ok(dafl_model_read_projections(model, dir, NULL));
    assert_survives(model);
    assert_ok(dafl_model_load(&again, at("a"), NULL));
    for (size_t k = 0; k <= LAYERS; k++) {
        dafl_projection given, drawn;

        assert_ok(dafl_model_projection(again, &given, k));
        assert_ok(dafl_projection_draw(&drawn, &other, k));
        assert_memory_equal(given.w, drawn.w,
                            drawn.in * drawn.out * sizeof *drawn.w);
        assert_memory_equal(given.b, drawn.b, drawn.out * sizeof *drawn.b);
        dafl_projection_drop(&drawn);
        dafl_projection_drop(&given);
    }
    dafl_model_free(&again);
    dafl_model_free(&model);
}

static void the_classifier_is_the_product_of_its_factors(void **state)
{
    dafl_params p = params();
    dafl_model *model = random_model(&p);
    const dafl_head *h = &model->heads[0];

    (void)state;
    for (size_t i = 0; i < p.width; i++)
        for (size_t c = 0; c < p.classes; c++) {
            double sum = 0;

            for (size_t j = 0; j < h->rank; j++)
                sum += h->u[i * h->rank + j] * h->m[j * p.classes + c];
            assert_true(fabs(h->w[i * p.classes + c] - sum) < 1e-14);
        }
    dafl_model_free(&model);
}

static void a_model_forgets_the_layers_below_one(void **state)
{
    dafl_params p = params();

    (void)state;
    for (size_t layer = 0; layer <= p.layers; layer++) {
        dafl_model *model = random_model(&p);

        dafl_model_forget(model, layer);
        assert_int_equal(model->n_heads, p.layers + 1);
        for (size_t t = 0; t < model->n_heads; t++) {
            assert_int_equal(model->heads[t].rank, 3 - t);
            assert_int_equal(model->heads[t].u != NULL, t >= layer);
            assert_int_equal(model->heads[t].m != NULL, t >= layer);
            assert_int_equal(model->heads[t].w != NULL, t >= layer);
        }
        for (size_t t = 0; t < model->n_blocks; t++)
            assert_int_equal(model->blocks[t].n != NULL, t >= layer);
        dafl_model_free(&model);
    }
}

static void a_model_takes_no_more_layers_than_it_has(void **state)
{
    dafl_params p = params();
    dafl_model *model = NULL;
    double x[100] = {0};
    dafl_why why = {""};

    (void)state;
    assert_ok(dafl_model_new(&model, &p));
    assert_int_equal(dafl_model_save(model, at("a"), &why), DAFL_ERR_ARG);
    assert_says(&why, "not complete");
    dafl_model_free(&model);
    model = random_model(&p);
    assert_int_equal(dafl_model_add_head(model, x, x, 1), DAFL_ERR_ARG);
    assert_int_equal(dafl_model_add_block(model, x, 1), DAFL_ERR_ARG);
    assert_int_equal(model->n_heads, LAYERS + 1);
    assert_int_equal(count_names(0), 0);
    dafl_model_free(&model);
}

/* ---- files that are no models ---- */

/* A saved model whose metadata and tensors can be changed, then read back. */
typedef struct {
    dafl_st *st;
    dafl_st_meta meta[MOST];
    dafl_st_tensor tensors[MOST];
    size_t n_meta, n;
} opened;

static opened open_saved(const char *path)
{
    opened o = {0};

    assert_ok(dafl_st_read(&o.st, path, NULL));
    o.n_meta = dafl_st_meta_count(o.st);
    o.n = dafl_st_count(o.st);
    assert_true(o.n_meta <= MOST && o.n <= MOST);
    for (size_t i = 0; i < o.n_meta; i++)
        o.meta[i] = dafl_st_meta_at(o.st, i);
    for (size_t i = 0; i < o.n; i++)
        o.tensors[i] = *dafl_st_at(o.st, i);
    return o;
}

/* Whether loading fails, naming file and culprit; the reason goes to `why`. */
static bool is_refused(const opened *o, const char *culprit, dafl_why *why)
{
    dafl_model *model = NULL;

    assert_ok(
        dafl_st_write(at("bad"), o->tensors, o->n, o->meta, o->n_meta, NULL));
    why->text[0] = '\0';
    if (dafl_model_load(&model, at("bad"), why) == DAFL_OK) {
        dafl_model_free(&model);
        (void)snprintf(why->text, sizeof why->text, "no error");
        return false;
    }
    assert_null(model);
    return strstr(why->text, at("bad")) != NULL &&
           strstr(why->text, culprit) != NULL;
}

static void a_missing_key_is_named(void **state)
{
    dafl_params p = params();
    dafl_model *model = random_model(&p);
    opened o;

    (void)state;
    assert_ok(dafl_model_save(model, at("a"), NULL));
    o = open_saved(at("a"));
    assert_int_equal(o.n_meta, 18);
    for (size_t i = 0; i < o.n_meta; i++) {
        dafl_st_meta taken = o.meta[i];
        dafl_why why;

        o.meta[i] = o.meta[--o.n_meta];
        if (!is_refused(&o, taken.key, &why))
            fail_msg("without %s: %s", taken.key, why.text);
        o.meta[o.n_meta++] = o.meta[i];
        o.meta[i] = taken;
    }
    dafl_st_free(&o.st);
    dafl_model_free(&model);
}

static void a_malformed_value_is_named(void **state)
{
    static const struct {
        const char *key, *value;
        const char *word; /* that the reason must have; NULL: the key */
    } bad[] = {
        {"format", "deepafl-model-2", NULL},
        {"format", "", NULL},
        {"method", "magic", NULL},
        {"features", "0", NULL},
        {"features", "-1", NULL},
        {"features", "3x", NULL},
        {"features", "", NULL},
        {"features", "65537", NULL},
        {"features", " 3", NULL},
        {"width", "0", NULL},
        {"width", "99999999999999999999", NULL},
        {"hidden", "0", NULL},
        {"hidden", "six", NULL},
        {"classes", "1", NULL},
        {"classes", "4.0", NULL},
        {"layers", "1026", NULL},
        {"layers", "-0", NULL},
        {"activation", "sigmoid", NULL},
        {"lambda", "-1", NULL},
        {"lambda", "nan", NULL},
        {"lambda", "inf", NULL},
        {"lambda", "", NULL},
        {"lambda", "1e999", NULL},
        {"gamma", "-1e-9", NULL},
        {"gamma", "0.1.2", NULL},
        {"seed", "", NULL},
        {"seed", "xyz", NULL},
        {"schedule", "often", NULL},
        {"ablate", "everything", "ablation"},
        {"projections", "", NULL},
        {"projections", "none", NULL},
        {"grid_bits", "0", "grid"},
        {"grid_bits", "25", NULL},
        {"magnitude", "0", NULL},
        {"magnitude", "65537", NULL},
        {"rows_max", "0", "n_max"},
        {"rows_max", "2000000000000", NULL},
        {"ring_bits", "0", "ring"},
        {"ring_bits", "56", "ring"},
        {"ring_bits", "-48", "ring"},
    };
    dafl_params p = params();
    dafl_model *model = random_model(&p);
    size_t wrong = 0;
    opened o;

    (void)state;
    assert_ok(dafl_model_save(model, at("a"), NULL));
    o = open_saved(at("a"));
    for (size_t i = 0; i < COUNT(bad); i++)
        for (size_t k = 0; k < o.n_meta; k++) {
            dafl_st_meta before = o.meta[k];
            dafl_why why;

            if (strcmp(before.key, bad[i].key) != 0)
                continue;
            o.meta[k].value = bad[i].value;
            if (!is_refused(&o, bad[i].word != NULL ? bad[i].word : bad[i].key,
                            &why)) {
                print_error("%s = '%s': %s\n", bad[i].key, bad[i].value,
                            why.text);
                wrong++;
            }
            o.meta[k] = before;
        }
    dafl_st_free(&o.st);
    dafl_model_free(&model);
    assert_int_equal(wrong, 0);
}

static void a_missing_or_misshapen_tensor_is_named(void **state)
{
    dafl_params p = params();
    dafl_model *model = random_model(&p);
    opened o;

    (void)state;
    assert_ok(dafl_model_save(model, at("a"), NULL));
    o = open_saved(at("a"));
    assert_int_equal(o.n, 3 * LAYERS + 2);
    for (size_t i = 0; i < o.n; i++) {
        dafl_st_tensor taken = o.tensors[i];
        dafl_why why;

        o.tensors[i] = o.tensors[--o.n];
        if (!is_refused(&o, taken.name, &why))
            fail_msg("without %s: %s", taken.name, why.text);
        o.tensors[o.n++] = o.tensors[i];
        o.tensors[i] = taken;
        o.tensors[i].rows--;
        if (!is_refused(&o, "not", &why))
            fail_msg("%s a row short: %s", taken.name, why.text);
        o.tensors[i] = taken;
        o.tensors[i].cols--;
        if (!is_refused(&o, "not", &why))
            fail_msg("%s a column short: %s", taken.name, why.text);
        o.tensors[i] = taken;
        o.tensors[i].rows = taken.cols;
        o.tensors[i].cols = taken.rows;
        if (!is_refused(&o, "tensor", &why))
            fail_msg("%s transposed: %s", taken.name, why.text);
        o.tensors[i] = taken;
    }
    dafl_st_free(&o.st);
    dafl_model_free(&model);
}

static void a_rank_above_what_is_possible_is_refused(void **state)
{
    dafl_params p = params();
    dafl_model *model = random_model(&p);
    double x[100] = {0};
    dafl_why why;
    opened o;

    (void)state;
    assert_ok(dafl_model_save(model, at("a"), NULL));
    o = open_saved(at("a"));
    o.tensors[0].cols = 5; /* U.0: min(width, classes) = 4 */
    o.tensors[0].data = x;
    assert_true(is_refused(&o, "U.0", &why));
    assert_says(&why, "at most 4 are possible");
    dafl_st_free(&o.st);
    dafl_model_free(&model);
}

static void numbers_that_are_not_finite_are_refused(void **state)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    dafl_params p = params();
    dafl_model *model = random_model(&p);
    opened o;

    (void)state;
    assert_ok(dafl_model_save(model, at("a"), NULL));
    o = open_saved(at("a"));
    for (size_t i = 0; i < o.n; i++)
        for (size_t b = 0; b < COUNT(bad); b++) {
            const double *data = o.tensors[i].data;
            size_t n = o.tensors[i].rows * o.tensors[i].cols;
            double *copy = doubles(n);
            dafl_why why;

            memcpy(copy, data, n * sizeof *copy);
            copy[n - 1] = bad[b];
            o.tensors[i].data = copy;
            assert_true(is_refused(&o, o.tensors[i].name, &why));
            assert_says(&why, "is not finite");
            o.tensors[i].data = data;
            free(copy);
        }
    dafl_st_free(&o.st);
    dafl_model_free(&model);
}

static void files_of_another_kind_are_refused(void **state)
{
    dafl_bytes text = {(const uint8_t *)"hello", 5};
    dafl_model *model = NULL;
    dafl_why why = {""};

    (void)state;
    assert_int_equal(dafl_model_load(&model, at("none"), &why), DAFL_ERR_INPUT);
    assert_says(&why, at("none"));
    assert_ok(dafl_file_replace(at("text"), &text, 1, NULL));
    assert_int_equal(dafl_model_load(&model, at("text"), &why), DAFL_ERR_INPUT);
    assert_says(&why, at("text"));
    assert_ok(dafl_st_write(at("empty"), NULL, 0, NULL, 0, NULL));
    assert_int_equal(dafl_model_load(&model, at("empty"), &why),
                     DAFL_ERR_INPUT);
    assert_says(&why, "not a deepafl model");
    assert_null(model);
}

static void a_failed_save_leaves_nothing(void **state)
{
    dafl_params p = params();
    dafl_model *model = random_model(&p);
    dafl_why why = {""};

    (void)state;
    assert_int_equal(mkdir(at("sub"), 0700), 0);
    assert_int_not_equal(dafl_model_save(model, at("none/a"), &why), DAFL_OK);
    assert_says(&why, at("none/a"));
    assert_int_not_equal(dafl_model_save(model, at("sub"), &why), DAFL_OK);
    assert_int_equal(count_names(0), 1);
    if (geteuid() != 0) { /* root may write anywhere */
        assert_int_equal(chmod(at("sub"), 0500), 0);
        assert_int_not_equal(dafl_model_save(model, at("sub/a"), &why),
                             DAFL_OK);
    }
    assert_int_equal(rmdir(at("sub")), 0); /* it is empty */
    dafl_model_free(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE_IN_DIR(models_survive_a_round_trip),
        CASE_IN_DIR(heads_of_rank_zero_and_afl_survive_too),
        CASE_IN_DIR(own_projections_are_stored),
        cmocka_unit_test(the_classifier_is_the_product_of_its_factors),
        cmocka_unit_test(a_model_forgets_the_layers_below_one),
        CASE_IN_DIR(a_model_takes_no_more_layers_than_it_has),
        CASE_IN_DIR(a_missing_key_is_named),
        CASE_IN_DIR(a_malformed_value_is_named),
        CASE_IN_DIR(a_missing_or_misshapen_tensor_is_named),
        CASE_IN_DIR(a_rank_above_what_is_possible_is_refused),
        CASE_IN_DIR(numbers_that_are_not_finite_are_refused),
        CASE_IN_DIR(files_of_another_kind_are_refused),
        CASE_IN_DIR(a_failed_save_leaves_nothing),
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
