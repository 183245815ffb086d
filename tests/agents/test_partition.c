/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "tests/check.h"
#include "agents/partition.h"

enum { CLASSES = 5 };

/* Labels alone: partitions look at nothing else. */
static dafl_data labels_of(size_t n)
{
    static char name[] = "labels";
    dafl_data data = {.path = name, .n = n, .classes = CLASSES};

    data.y = calloc(n + 1, sizeof *data.y);
    assert_non_null(data.y);
    for (size_t i = 0; i < n; i++)
        data.y[i] = (uint32_t)random_size(0, CLASSES - 1);
    return data;
}

static partition make(const dafl_data *data, size_t clients, const char *how,
                      uint8_t seed)
{
    dafl_seed s = {{seed}};
    dafl_why why = {""};
    partition p;

    if (partition_make(&p, data, clients, how, &s, &why) != DAFL_OK)
        fail_msg("%s", why.text);
    return p;
}

static size_t size_of(const partition *p, size_t k)
{
    return p->first[k + 1] - p->first[k];
}

/* Every row has one owner. */
static void assert_deals_all(const partition *p, const dafl_data *data,
                             size_t clients)
{
    unsigned char *seen = calloc(data->n, 1);

    assert_non_null(seen);
    assert_int_equal(p->n_clients, clients);
    assert_int_equal(p->first[0], 0);
    assert_int_equal(p->first[clients], data->n);
    for (size_t k = 0; k < clients; k++)
        assert_true(p->first[k] <= p->first[k + 1]);
    for (size_t i = 0; i < data->n; i++) {
        assert_true(p->rows[i] < data->n);
        assert_int_equal(seen[p->rows[i]]++, 0);
    }
    free(seen);
}

static const char *const ways[] = {"iid",
                                   "dirichlet:0.1",
                                   "dirichlet:100",
                                   "dirichlet:1e-6",
                                   "dirichlet:1000000",
                                   "shards:1",
                                   "shards:3"};

static void every_row_goes_to_one_client(void **state)
{
    (void)state;
    for (size_t w = 0; w < COUNT(ways); w++)
        for (size_t round = 0; round < 20; round++) {
            size_t n = random_size(3, 400);
            size_t clients = round == 0 ? 1 : random_size(1, n / 3);
            dafl_data data = labels_of(n);
            partition p = make(&data, clients, ways[w], (uint8_t)round);

            assert_deals_all(&p, &data, clients);
            partition_drop(&p);
            assert_null(p.rows);
            partition_drop(&p);
            free(data.y);
        }
}

static void the_seed_decides_the_deal(void **state)
{
    dafl_data data = labels_of(300);

    (void)state;
    for (size_t w = 0; w < COUNT(ways); w++) {
        partition a = make(&data, 10, ways[w], 1);
        partition b = make(&data, 10, ways[w], 1);
        partition c = make(&data, 10, ways[w], 2);

        assert_memory_equal(a.rows, b.rows, 300 * sizeof *a.rows);
        assert_memory_equal(a.first, b.first, 11 * sizeof *a.first);
        assert_memory_not_equal(a.rows, c.rows, 300 * sizeof *a.rows);
        partition_drop(&c);
        partition_drop(&b);
        partition_drop(&a);
    }
    free(data.y);
}

static void iid_parts_are_equal_and_mixed(void **state)
{
    dafl_data data = labels_of(1003);
    partition p = make(&data, 10, "iid", 3);

    (void)state;
    for (size_t k = 0; k < 10; k++) {
        size_t low = 0;

        assert_true(size_of(&p, k) == 100 || size_of(&p, k) == 101);
        for (size_t i = p.first[k]; i < p.first[k + 1]; i++)
            low += p.rows[i] < 500;
        assert_true(low > 25 && low < 75); /* five standard deviations */
    }
    partition_drop(&p);
    free(data.y);
}

/* The largest share of a class that one client holds, mean over classes. */
static double concentration(const dafl_data *data, const partition *p)
{
    double sum = 0;

    for (uint32_t c = 0; c < CLASSES; c++) {
        size_t all = 0, most = 0;

        for (size_t k = 0; k < p->n_clients; k++) {
            size_t n = 0;

            for (size_t i = p->first[k]; i < p->first[k + 1]; i++)
                n += data->y[p->rows[i]] == c;
            all += n;
            most = n > most ? n : most;
        }
        sum += (double)most / (double)all;
    }
    return sum / CLASSES;
}

static void dirichlet_concentrates_the_more_the_smaller_alpha(void **state)
{
    dafl_data data = labels_of(5000);
    static const char *const alphas[] = {"dirichlet:1e-9", "dirichlet:0.01",
                                         "dirichlet:0.5", "dirichlet:10",
                                         "dirichlet:100000"};
    double last = 2;

    (void)state;
    for (size_t i = 0; i < COUNT(alphas); i++) {
        double mean = 0;

        for (uint8_t seed = 0; seed < 5; seed++) {
            partition p = make(&data, 20, alphas[i], seed);

            mean += concentration(&data, &p) / 5;
            partition_drop(&p);
        }
        assert_true(mean < last);
        if (i == 0)
            assert_true(mean > 0.999); /* a class to one client */
        if (i == 4)
            assert_true(mean < 0.06); /* a twentieth to each */
        last = mean;
    }
    free(data.y);
}

/* Of K clients with Dirichlet(alpha), the share of one has the mean 1/K and
 * the variance (K - 1) / (K^2 (K alpha + 1)). */
static void dirichlet_shares_have_their_variance(void **state)
{
    enum { N = 2000, SEEDS = 200, K = 4 };
    dafl_data data = {.path = (char[]){"labels"}, .n = N, .classes = 1};
    double alpha = 0.5, sum = 0, squares = 0, variance;

    (void)state;
    data.y = calloc(N, sizeof *data.y);
    assert_non_null(data.y);
    for (uint8_t seed = 0; seed < SEEDS; seed++) {
        partition p = make(&data, K, "dirichlet:0.5", seed);

        for (size_t k = 0; k < K; k++) {
            double share = (double)size_of(&p, k) / N;

            sum += share;
            squares += (share - 1.0 / K) * (share - 1.0 / K);
        }
        partition_drop(&p);
    }
    variance = (K - 1.0) / (K * K * (K * alpha + 1));
    assert_true(fabs(sum / SEEDS - 1) < 1e-9);
    assert_true(fabs(squares / (SEEDS * K) / variance - 1) < 0.25);
    free(data.y);
}

/* S shards of a sorted list touch at most 2 S labels, few if S is small. */
static void shards_hold_few_classes_and_equal_parts(void **state)
{
    dafl_data data = labels_of(1000);

    (void)state;
    for (size_t s = 1; s <= 3; s++) {
        char how[16];
        partition p;

        (void)snprintf(how, sizeof how, "shards:%zu", s);
        p = make(&data, 50, how, 9);
        for (size_t k = 0; k < 50; k++) {
            size_t per = 1000 / (50 * s), classes = 0;

            assert_true(size_of(&p, k) >= s * per &&
                        size_of(&p, k) <= s * (per + 1));
            for (uint32_t c = 0; c < CLASSES; c++)
                for (size_t i = p.first[k]; i < p.first[k + 1]; i++)
                    if (data.y[p.rows[i]] == c) {
                        classes++;
                        break;
                    }
            assert_true(classes <= 2 * s);
        }
        partition_drop(&p);
    }
    free(data.y);
}

static void other_partitions_are_refused(void **state)
{
    static const struct {
        size_t clients;
        const char *how, *reason;
    } bad[] = {
        {3, "", "none of iid"},
        {3, "IID", "'IID' is none of iid"},
        {3, "iid:2", "none of iid"},
        {3, "dirichlet", "none of iid"},
        {3, "dirichlet:", "none of iid"},
        {3, "dirichlet:0", "none of iid"},
        {3, "dirichlet:-1", "none of iid"},
        {3, "dirichlet:nan", "none of iid"},
        {3, "dirichlet:inf", "none of iid"},
        {3, "dirichlet:1x", "none of iid"},
        {3, "shards:0", "none of iid"},
        {3, "shards:1.5", "none of iid"},
        {3, "shards:-2", "none of iid"},
        {0, "iid", "0 clients cannot share the 20 rows of labels"},
        {21, "iid", "21 clients cannot share the 20 rows"},
        {SIZE_MAX, "dirichlet:1", "cannot share"},
        {10, "shards:3", "3 shards for each of 10 clients"},
        {20, "shards:1000000", "1000000 shards"},
    };
    dafl_data data = labels_of(20);
    dafl_seed seed = {{0}};

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        partition p = {.n_clients = 77};
        dafl_why why = {""};

        assert_int_equal(
            partition_make(&p, &data, bad[i].clients, bad[i].how, &seed, &why),
            DAFL_ERR_INPUT);
        assert_says(&why, bad[i].reason);
        assert_int_equal(p.n_clients, 77);
    }
    free(data.y);
}

static void a_share_of_the_labels_is_flipped_exactly(void **state)
{
    static const double taus[] = {0, 0.1, 0.25, 0.333, 0.5, 1};

    (void)state;
    for (size_t i = 0; i < COUNT(taus); i++) {
        size_t n = random_size(1, 500), changed = 0;
        size_t count[CLASSES] = {0};
        dafl_data data = labels_of(n);
        uint32_t *before = calloc(n, sizeof *before);
        dafl_seed seed = {{(uint8_t)i}};

        assert_non_null(before);
        memcpy(before, data.y, n * sizeof *before);
        assert_ok(partition_flip_labels(&data, taus[i], &seed, NULL));
        for (size_t k = 0; k < n; k++) {
            assert_true(data.y[k] < CLASSES);
            changed += data.y[k] != before[k];
            count[(data.y[k] + CLASSES - before[k]) % CLASSES]++;
        }
        assert_int_equal(changed, (size_t)floor(taus[i] * (double)n + 0.5));
        for (size_t c = 1; c < CLASSES; c++) /* every other class as often */
            assert_true(fabs((double)count[c] - (double)changed / 4) <=
                        5 * sqrt((double)changed * 3 / 16));
        free(before);
        free(data.y);
    }
}

static void flips_of_no_share_are_refused(void **state)
{
    static const double bad[] = {-0.1, 1.1, NAN, INFINITY};
    dafl_data data = labels_of(20);
    dafl_seed seed = {{0}};

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        dafl_why why = {""};

        assert_int_equal(partition_flip_labels(&data, bad[i], &seed, &why),
                         DAFL_ERR_INPUT);
        assert_says(&why, "not between 0 and 1");
    }
    data.classes = 1; /* there is no other class */
    memset(data.y, 0, 20 * sizeof *data.y);
    assert_ok(partition_flip_labels(&data, 1, &seed, NULL));
    for (size_t i = 0; i < 20; i++)
        assert_int_equal(data.y[i], 0);
    free(data.y);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_goes_to_one_client),
        cmocka_unit_test(the_seed_decides_the_deal),
        cmocka_unit_test(iid_parts_are_equal_and_mixed),
        cmocka_unit_test(dirichlet_concentrates_the_more_the_smaller_alpha),
        cmocka_unit_test(dirichlet_shares_have_their_variance),
        cmocka_unit_test(shards_hold_few_classes_and_equal_parts),
        cmocka_unit_test(other_partitions_are_refused),
        cmocka_unit_test(a_share_of_the_labels_is_flipped_exactly),
        cmocka_unit_test(flips_of_no_share_are_refused),
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
