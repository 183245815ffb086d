/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "tests/check.h"
#include "lib/params.h"

static dafl_params good(void)
{
    return (dafl_params){.features = 10,
                         .width = 20,
                         .hidden = 30,
                         .classes = 4,
                         .layers = 5,
                         .lambda = 1,
                         .gamma = 0.1,
                         .contract = DAFL_CONTRACT_DEFAULT};
}

static void usual_parameters_pass_and_get_their_ring(void **state)
{
    dafl_params p = good();

    (void)state;
    assert_ok(dafl_params_check(&p, NULL));
    assert_int_equal(p.contract.w, 48);
    assert_int_equal(p.width, 20);
    p.features = p.width = p.hidden = p.classes = DAFL_SIZE_MAX;
    p.layers = DAFL_LAYERS_MAX;
    p.lambda = p.gamma = 0;
    assert_ok(dafl_params_check(&p, NULL));
    p.features = p.width = p.hidden = 1;
    p.classes = 2;
    p.layers = 0;
    assert_ok(dafl_params_check(&p, NULL));
}

static void afl_has_the_features_width_and_no_layers(void **state)
{
    dafl_params p = good();

    (void)state;
    p.method = DAFL_METHOD_AFL;
    p.width = p.hidden = 0;
    p.ablate = DAFL_ABLATE_OMEGA;
    assert_ok(dafl_params_check(&p, NULL));
    assert_int_equal(p.width, 10);
    assert_int_equal(p.hidden, 10);
    assert_int_equal(p.layers, 0);
    assert_int_equal(p.ablate, DAFL_ABLATE_NOTHING);
}

static void assert_refused(dafl_params p, const char *reason)
{
    dafl_why why = {""};

    assert_int_equal(dafl_params_check(&p, &why), DAFL_ERR_INPUT);
    assert_says(&why, reason);
    assert_int_equal(dafl_params_check(&p, NULL), DAFL_ERR_INPUT);
}

static void sizes_out_of_range_are_refused(void **state)
{
    const size_t over = DAFL_SIZE_MAX + 1;
    dafl_params p = good();

    (void)state;
#define REFUSE(field, value, reason) \
    do {                             \
        p = good();                  \
        p.field = (value);           \
        assert_refused(p, reason);   \
    } while (0)
    REFUSE(features, 0, "features 0: choose 1 to 65536");
    REFUSE(features, over, "features 65537: choose");
    REFUSE(width, 0, "width 0: choose");
    REFUSE(width, SIZE_MAX, "width 18446744073709551615: choose");
    REFUSE(hidden, 0, "hidden width 0: choose");
    REFUSE(hidden, over, "hidden width 65537: choose");
    REFUSE(classes, 0, "classes 0: choose 2");
    REFUSE(classes, 1, "classes 1: choose 2");
    REFUSE(classes, over, "classes 65537: choose");
    REFUSE(layers, DAFL_LAYERS_MAX + 1, "layers ");
    REFUSE(lambda, -1e-9, "lambda -1e-09: choose");
    REFUSE(lambda, NAN, "lambda nan: choose");
    REFUSE(gamma, INFINITY, "gamma inf: choose");
    REFUSE(gamma, -1, "gamma -1: choose");
    REFUSE(contract.s, 0, "grid of 0 bits");
    REFUSE(contract.n_max, 0, "n_max 0");
    REFUSE(ablate, DAFL_ABLATE_PROJECTION, "equal widths, not 20 and 30");
    REFUSE(ablate, DAFL_ABLATE_OMEGA, "equal widths, not 20 and 30");
#undef REFUSE
}

static void only_two_ablations_need_equal_widths(void **state)
{
    (void)state;
    for (int a = DAFL_ABLATE_NOTHING; a <= DAFL_ABLATE_OMEGA; a++) {
        dafl_params p = good();

        p.ablate = (dafl_ablation)a;
        assert_int_equal(dafl_params_check(&p, NULL) == DAFL_OK,
                         a != DAFL_ABLATE_PROJECTION && a != DAFL_ABLATE_OMEGA);
        p.hidden = p.width;
        assert_ok(dafl_params_check(&p, NULL));
    }
}

static void names_are_parsed_back(void **state)
{
    (void)state;
    for (int i = DAFL_METHOD_DEEPAFL; i <= DAFL_METHOD_AFL; i++) {
        dafl_method m = (dafl_method)99;

        assert_ok(
            dafl_method_parse(&m, dafl_method_name((dafl_method)i), NULL));
        assert_int_equal(m, i);
    }
    for (int i = DAFL_SCHEDULE_DELTA; i <= DAFL_SCHEDULE_FULL; i++) {
        dafl_schedule s = (dafl_schedule)99;

        assert_ok(dafl_schedule_parse(&s, dafl_schedule_name((dafl_schedule)i),
                                      NULL));
        assert_int_equal(s, i);
    }
    for (int i = DAFL_ABLATE_NOTHING; i <= DAFL_ABLATE_OMEGA; i++) {
        dafl_ablation a = (dafl_ablation)99;

        assert_ok(dafl_ablation_parse(&a, dafl_ablation_name((dafl_ablation)i),
                                      NULL));
        assert_int_equal(a, i);
    }
}

static void unknown_names_are_answered_with_the_known_ones(void **state)
{
    static const char *const bad[] = {"", "Deepafl", "afl ", "delt", "fulll"};

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        dafl_method m = (dafl_method)99;
        dafl_schedule s = (dafl_schedule)99;
        dafl_ablation a = (dafl_ablation)99;
        dafl_why why = {""};

        assert_int_equal(dafl_method_parse(&m, bad[i], &why), DAFL_ERR_INPUT);
        assert_says(&why, "deepafl, afl");
        assert_int_equal(dafl_schedule_parse(&s, bad[i], &why), DAFL_ERR_INPUT);
        assert_says(&why, "delta, full");
        assert_int_equal(dafl_ablation_parse(&a, bad[i], &why), DAFL_ERR_INPUT);
        assert_says(&why, "nothing, skip, projection, activation, omega");
        assert_says(&why, bad[i]);
        assert_true((int)m == 99 && (int)s == 99 && (int)a == 99);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(usual_parameters_pass_and_get_their_ring),
        cmocka_unit_test(afl_has_the_features_width_and_no_layers),
        cmocka_unit_test(sizes_out_of_range_are_refused),
        cmocka_unit_test(only_two_ablations_need_equal_widths),
        cmocka_unit_test(names_are_parsed_back),
        cmocka_unit_test(unknown_names_are_answered_with_the_known_ones),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
