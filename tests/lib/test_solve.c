/* SPDX-License-Identifier: Apache-2.0 */
/* Matrices are column-major where lib/solve.h says so: x[j * d + i]. */
#include <float.h>
#include <math.h>

#include "tests/check.h"
#include "lib/solve.h"

static double norm(const double *x, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sqrt(sum);
}

static double distance(const double *x, const double *y, size_t n)
{
    double *z = doubles(n), result;

    for (size_t i = 0; i < n; i++)
        z[i] = x[i] - y[i];
    result = norm(z, n);
    free(z);
    return result;
}

static double dot(const double *x, const double *y, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

/* c (m x n) = a (m x k) b (k x n), row-major, from calloc. */
static double *product(const double *a, const double *b, size_t m, size_t k,
                       size_t n)
{
    double *c = doubles(m * n);

    for (size_t i = 0; i < m; i++)
        for (size_t l = 0; l < k; l++)
            for (size_t j = 0; j < n; j++)
                c[i * n + j] += a[i * k + l] * b[l * n + j];
    return c;
}

static double *transposed(const double *a, size_t rows, size_t cols)
{
    double *t = doubles(rows * cols);

    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++)
            t[j * rows + i] = a[i * cols + j];
    return t;
}

/* d rows that are an orthonormal basis: Gram-Schmidt, twice to be accurate. */
static double *random_basis(size_t d)
{
    double *v = random_doubles(d * d);

    for (size_t i = 0; i < d; i++) {
        double *row = v + i * d, length;

        for (size_t j = 0; j < 2 * i; j++) {
            const double *other = v + j % i * d;
            double along = dot(row, other, d);

            for (size_t c = 0; c < d; c++)
                row[c] -= along * other[c];
        }
        length = norm(row, d);
        for (size_t c = 0; c < d; c++)
            row[c] /= length;
    }
    return v;
}

/* sum_i l_i v_i v_i', symmetric to the bit. */
static double *from_spectrum(const double *v, const double *l, size_t d)
{
    double *a = doubles(d * d);

    for (size_t r = 0; r < d; r++)
        for (size_t c = 0; c <= r; c++) {
            for (size_t i = 0; i < d; i++)
                a[r * d + c] += l[i] * v[i * d + r] * v[i * d + c];
            a[c * d + r] = a[r * d + c];
        }
    return a;
}

/* ---- ridge ---- */

static void ridge_residual_is_within_bound(void **state)
{
    static const double lambdas[] = {0, 1e-6, 1, 1e6};

    (void)state;
    for (size_t round = 0; round < 40; round++) {
        size_t d = random_size(1, 60), k = random_size(1, 12);
        size_t n = d + random_size(5, 30);
        double lambda = lambdas[round % COUNT(lambdas)];
        double *x = random_doubles(n * d), *xt = transposed(x, n, d);
        double *g = product(xt, x, d, n, d), *work = doubles(d * d);
        double *h = random_doubles(k * d), *w = doubles(k * d), *hh;

        memcpy(work, g, d * d * sizeof *g);
        memcpy(w, h, k * d * sizeof *h);
        assert_ok(dafl_solve_ridge(work, w, d, k, lambda, NULL));
        for (size_t i = 0; i < d; i++)
            g[i * d + i] += lambda;
        hh = product(w, g, k, d, d);
        assert_true(distance(hh, h, k * d) <= 10 * (double)d * DBL_EPSILON *
                                                  norm(g, d * d) *
                                                  norm(w, k * d));
        free(hh);
        free(w);
        free(h);
        free(work);
        free(g);
        free(xt);
        free(x);
    }
}

/* H has parts outside the range of G, so there is only a least-squares
 * solution; of those, the pseudo-inverse gives the one of least norm. */
static void a_singular_matrix_gives_the_least_norm_solution(void **state)
{
    (void)state;
    for (size_t round = 0; round < 30; round++) {
        size_t d = random_size(2, 40), k = random_size(1, 8);
        size_t rank = random_size(round == 0 ? 0 : 1, d - 1);
        double *v = random_basis(d), *l = doubles(d), *g;
        double *w = random_doubles(k * d), *best = doubles(k * d);

        for (size_t i = 0; i < rank; i++)
            l[i] = 1 + 9 * fabs(random_double());
        g = from_spectrum(v, l, d);
        for (size_t j = 0; j < k; j++)
            for (size_t i = 0; i < rank; i++)
                for (size_t c = 0; c < d; c++)
                    best[j * d + c] +=
                        dot(v + i * d, w + j * d, d) / l[i] * v[i * d + c];
        assert_ok(dafl_solve_ridge(g, w, d, k, 0, NULL));
        /* Perturbation of the pseudo-inverse: condition 10, twice. */
        assert_true(distance(w, best, k * d) <=
                    1000 * (double)d * DBL_EPSILON * (1 + norm(best, k * d)));
        free(g);
        free(best);
        free(w);
        free(l);
        free(v);
    }
}

static void a_zero_matrix_gives_zero(void **state)
{
    double g[9] = {0}, w[6] = {1, 2, 3, 4, 5, 6};

    (void)state;
    assert_ok(dafl_solve_ridge(g, w, 3, 2, 0, NULL));
    for (size_t i = 0; i < 6; i++)
        assert_true(w[i] == 0);
}

static void ridge_refuses_what_is_not_finite(void **state)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY};

    (void)state;
    for (size_t b = 0; b < COUNT(bad); b++)
        for (size_t place = 0; place < 7; place++) {
            double g[4] = {2, 1, 1, 2}, w[2] = {1, 1}, lambda = 1;
            dafl_why why = {""};

            *(place < 4   ? &g[place]
              : place < 6 ? &w[place - 4]
                          : &lambda) = bad[b];
            assert_int_equal(dafl_solve_ridge(g, w, 2, 1, lambda, &why),
                             DAFL_ERR_NUMERIC);
            assert_string_not_equal(why.text, "");
        }
}

/* ---- factor ---- */

typedef struct {
    size_t d, k, rank;
    double *w;          /* k x d: W column-major */
    double *ut, *m, *s; /* r x d, r x k */
} factors;

static factors factor(const double *w, size_t d, size_t k)
{
    size_t full = d < k ? d : k;
    factors f = {d,
                 k,
                 99,
                 doubles(d * k),
                 doubles(d * full),
                 doubles(full * k),
                 doubles(full)};
    double *work = doubles(d * k);

    memcpy(f.w, w, d * k * sizeof *w);
    memcpy(work, w, d * k * sizeof *w);
    assert_ok(dafl_solve_factor(f.ut, f.m, f.s, &f.rank, work, d, k, NULL));
    free(work);
    return f;
}

static void drop_factors(factors *f)
{
    free(f->s);
    free(f->m);
    free(f->ut);
    free(f->w);
}

/* W = U M, U'U = I, M M' = S^2, s falling. */
static void assert_factors(const factors *f)
{
    double tol = 50 * (double)(f->d + f->k) * DBL_EPSILON;
    double *mt = transposed(f->m, f->rank, f->k);
    double *wt = product(mt, f->ut, f->k, f->rank, f->d);

    assert_true(distance(wt, f->w, f->d * f->k) <=
                tol * norm(f->w, f->d * f->k));
    for (size_t i = 0; i < f->rank; i++)
        for (size_t j = 0; j < f->rank; j++) {
            double one = i == j ? 1 : 0, *mi = f->m + i * f->k;

            assert_true(fabs(dot(f->ut + i * f->d, f->ut + j * f->d, f->d) -
                             one) <= tol);
            assert_true(fabs(dot(mi, f->m + j * f->k, f->k) -
                             one * f->s[i] * f->s[i]) <=
                        tol * f->s[0] * f->s[0]);
            assert_true(i > j || f->s[i] >= f->s[j]);
        }
    free(wt);
    free(mt);
}

static void any_matrix_is_its_factors(void **state)
{
    (void)state;
    for (size_t round = 0; round < 60; round++) {
        size_t d = random_size(1, 30), k = random_size(1, 30);
        size_t full = d < k ? d : k, rank = random_size(1, full);
        double *a = random_doubles(k * rank), *b = random_doubles(rank * d);
        double *w = product(a, b, k, rank, d);
        factors f = factor(w, d, k);

        assert_int_equal(f.rank, rank);
        assert_factors(&f);
        drop_factors(&f);
        free(w);
        free(b);
        free(a);
    }
}

static void zero_has_rank_zero(void **state)
{
    static const double w[12] = {0};
    factors f = factor(w, 4, 3);

    (void)state;
    assert_int_equal(f.rank, 0);
    drop_factors(&f);
}

static void small_and_large_matrices_keep_their_rank(void **state)
{
    static const double scales[] = {1e-300, 1e-150, 1e150, 1e300};

    (void)state;
    for (size_t i = 0; i < COUNT(scales); i++) {
        double w[6] = {1, 2, 3, 0, 1, 1};
        factors f;

        for (size_t k = 0; k < 6; k++)
            w[k] *= scales[i];
        f = factor(w, 3, 2);
        assert_int_equal(f.rank, 2);
        drop_factors(&f);
    }
}

static void factor_refuses_what_is_not_finite(void **state)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY};

    (void)state;
    for (size_t b = 0; b < COUNT(bad); b++)
        for (size_t place = 0; place < 6; place++) {
            double w[6] = {1, 2, 3, 4, 5, 7}, u[6], m[4], s[2];
            size_t rank = 99;
            dafl_why why = {""};

            w[place] = bad[b];
            assert_int_equal(dafl_solve_factor(u, m, s, &rank, w, 3, 2, &why),
                             DAFL_ERR_NUMERIC);
            assert_string_not_equal(why.text, "");
            assert_int_equal(rank, 99);
        }
}

/* ---- sandwich ---- */

/* A block's problem: W (d x C) factored, F with `rows` rows, Pi = F'F and
 * Upsilon = F'R. With few rows Pi is singular. */
typedef struct {
    size_t f; /* columns of F */
    factors w;
    double *pi;    /* f x f */
    double *ups;   /* f x C */
    double *nt;    /* the right-hand side, then N': r x f */
    double *basis; /* rows: eigenvectors of Pi; from `rank` on it is singular */
    size_t rank;
} sandwich;

static void fill_right_hand_side(sandwich *p)
{
    double *mu = transposed(p->ups, p->f, p->w.k);

    p->nt = product(p->w.m, mu, p->w.rank, p->w.k, p->f);
    free(mu);
}

/* Pi has `rank` eigenvalues in [1, 10] and the others `rest`. */
static sandwich make_sandwich(size_t d, size_t classes, size_t f, size_t rank,
                              double rest)
{
    sandwich p = {.f = f, .rank = rank, .basis = random_basis(f)};
    double *w = random_doubles(d * classes), *l = doubles(f);
    double *x = random_doubles(f * classes), *vt;

    p.w = factor(w, d, classes);
    for (size_t i = 0; i < f; i++)
        l[i] = i < rank ? 1 + 9 * fabs(random_double()) : rest;
    p.pi = from_spectrum(p.basis, l, f);
    for (size_t i = 0; i < f; i++) /* Upsilon lies in the range of Pi */
        for (size_t c = 0; c < classes; c++)
            x[i * classes + c] *= i < rank ? sqrt(l[i]) : 0;
    vt = transposed(p.basis, f, f);
    p.ups = product(vt, x, f, f, classes);
    fill_right_hand_side(&p);
    free(vt);
    free(x);
    free(l);
    free(w);
    return p;
}

static void drop_sandwich(sandwich *p)
{
    free(p->nt);
    free(p->ups);
    free(p->pi);
    free(p->basis);
    drop_factors(&p->w);
}

static dafl_err solve(sandwich *p, double gamma, dafl_why *why)
{
    double *pi = doubles(p->f * p->f);
    dafl_err err;

    memcpy(pi, p->pi, p->f * p->f * sizeof *pi);
    err = dafl_solve_sandwich(p->nt, pi, p->w.s, p->f, p->w.rank, gamma, why);
    free(pi);
    return err;
}

/* Pi Omega W W' + gamma Omega = Upsilon W', Omega = N U', all of it dense. */
static void assert_stationary(const sandwich *p, double gamma)
{
    size_t f = p->f, d = p->w.d, c = p->w.k, r = p->w.rank;
    double *n = transposed(p->nt, r, f);
    double *omega = product(n, p->w.ut, f, r, d);
    double *w = transposed(p->w.w, c, d); /* d x C */
    double *ww = product(w, p->w.w, d, c, d);
    double *po = product(p->pi, omega, f, f, d);
    double *left = product(po, ww, f, d, d);
    double *right = product(p->ups, p->w.w, f, c, d);
    double scale =
        (norm(p->pi, f * f) * norm(ww, d * d) + gamma) * norm(omega, f * d) +
        norm(p->ups, f * c) * norm(w, d * c);

    for (size_t i = 0; i < f * d; i++)
        left[i] += gamma * omega[i];
    assert_true(distance(left, right, f * d) <=
                50 * (double)(f + d + c) * DBL_EPSILON * scale);
    free(right);
    free(left);
    free(po);
    free(ww);
    free(w);
    free(omega);
    free(n);
}

/* The length of N's part in the directions that Pi does not see. */
static double hidden_part(const sandwich *p)
{
    double sum = 0;

    for (size_t j = 0; j < p->w.rank; j++)
        for (size_t i = p->rank; i < p->f; i++) {
            double along = dot(p->nt + j * p->f, p->basis + i * p->f, p->f);
            sum += along * along;
        }
    return sqrt(sum);
}

static void omega_satisfies_its_stationarity_condition(void **state)
{
    static const double gammas[] = {1e-3, 0.1, 1, 1000};

    (void)state;
    for (size_t round = 0; round < 40; round++) {
        size_t d = random_size(1, 20), f = random_size(1, 25);
        size_t c = round % 2 == 0 ? random_size(1, d) : d + random_size(1, 8);
        sandwich p = make_sandwich(d, c, f, random_size(1, f), 0);
        double gamma = gammas[round % COUNT(gammas)];

        assert_ok(solve(&p, gamma, NULL));
        assert_stationary(&p, gamma);
        drop_sandwich(&p);
    }
}

static void without_gamma_a_singular_pi_gives_the_least_norm(void **state)
{
    (void)state;
    for (size_t round = 0; round < 30; round++) {
        size_t d = random_size(1, 15), f = random_size(2, 25);
        sandwich p =
            make_sandwich(d, random_size(1, 10), f, random_size(1, f - 1), 0);

        assert_ok(solve(&p, 0, NULL));
        assert_stationary(&p, 0);
        assert_true(hidden_part(&p) <=
                    1e-12 * (1 + norm(p.nt, p.w.rank * p.f)));
        drop_sandwich(&p);
    }
}

/* Pi has directions that F does not see, whose eigenvalues are rounding errors
 * of either sign; gamma is smaller still. They count as absent: what rounding
 * put there into the right-hand side must not be divided by gamma. */
static void a_tiny_gamma_does_not_blow_rounding_up(void **state)
{
    static const double gammas[] = {1e-18, 1e-30, 1e-300};

    (void)state;
    for (size_t round = 0; round < 40; round++) {
        size_t f = random_size(5, 25), c = 3; /* W: 20 x 3, s about 2 .. 3 */
        sandwich p = make_sandwich(20, c, f, random_size(1, f - 1),
                                   round % 2 == 0 ? 0 : -1e-16);
        double *best = doubles(c * f);
        double gamma = gammas[round / 2 % COUNT(gammas)];

        assert_ok(solve(&p, 0, NULL));
        memcpy(best, p.nt, p.w.rank * f * sizeof *best);
        free(p.nt);
        fill_right_hand_side(&p);
        assert_ok(solve(&p, gamma, NULL));
        if (distance(p.nt, best, p.w.rank * f) >
            1e-6 * norm(best, p.w.rank * f))
            fail_msg("gamma = %g: ||N|| = %g, without gamma %g", gamma,
                     norm(p.nt, p.w.rank * f), norm(best, p.w.rank * f));
        free(best);
        drop_sandwich(&p);
    }
}

static void no_columns_need_no_solution(void **state)
{
    double pi[4] = {1, 0, 0, 1};

    (void)state;
    assert_ok(dafl_solve_sandwich(pi, pi, pi, 2, 0, 0.5, NULL));
}

static void sandwich_refuses_what_is_not_finite(void **state)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    static const double gammas[] = {0, 1};

    (void)state;
    for (size_t b = 0; b < COUNT(bad); b++)
        for (size_t g = 0; g < COUNT(gammas); g++)
            for (size_t place = 0; place < 6; place++) {
                double pi[4] = {2, 1, 1, 2}, n[2] = {1, 1}, s[1] = {1};
                dafl_why why = {""};

                *(place < 4 ? &pi[place] : &n[place - 4]) = bad[b];
                assert_int_equal(
                    dafl_solve_sandwich(n, pi, s, 2, 1, gammas[g], &why),
                    DAFL_ERR_NUMERIC);
                assert_string_not_equal(why.text, "");
            }
}

/* Finite sums so large that the arithmetic overflows. */
static void overflow_has_no_answer(void **state)
{
    static const double gammas[] = {0, 1};

    (void)state;
    for (size_t g = 0; g < COUNT(gammas); g++) {
        double pi[9], n[3] = {1e308, 1e308, 1e308}, s[1] = {1e-200};
        dafl_err err;

        for (size_t i = 0; i < 9; i++)
            pi[i] = 1e308 * (i % 4 == 0 ? 1.5 : 1);
        err = dafl_solve_sandwich(n, pi, s, 3, 1, gammas[g], NULL);
        assert_true(err == DAFL_OK || err == DAFL_ERR_NUMERIC);
        for (size_t i = 0; err == DAFL_OK && i < 3; i++)
            assert_true(isfinite(n[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ridge_residual_is_within_bound),
        cmocka_unit_test(a_singular_matrix_gives_the_least_norm_solution),
        cmocka_unit_test(a_zero_matrix_gives_zero),
        cmocka_unit_test(ridge_refuses_what_is_not_finite),
        cmocka_unit_test(any_matrix_is_its_factors),
        cmocka_unit_test(zero_has_rank_zero),
        cmocka_unit_test(small_and_large_matrices_keep_their_rank),
        cmocka_unit_test(factor_refuses_what_is_not_finite),
        cmocka_unit_test(omega_satisfies_its_stationarity_condition),
        cmocka_unit_test(without_gamma_a_singular_pi_gives_the_least_norm),
        cmocka_unit_test(a_tiny_gamma_does_not_blow_rounding_up),
        cmocka_unit_test(no_columns_need_no_solution),
        cmocka_unit_test(sandwich_refuses_what_is_not_finite),
        cmocka_unit_test(overflow_has_no_answer),
    };

    check_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
