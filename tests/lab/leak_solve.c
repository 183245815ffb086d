/* SPDX-License-Identifier: Apache-2.0 */
/* What can be computed from the vectors: the combinations in which the masks
 * that the attacker cannot make cancel. */
#include "tests/lab/leak_inside.h"

#include <stdlib.h>
#include <string.h>

/* ---- elimination ---- */

/* Columns are streams: those of each context apart, by pairs of clients. */
typedef struct {
    uint16_t lo, hi;
    const dafl_digest *ctx2;
} stream;

static size_t column_of(lab_list *columns, uint16_t u, uint16_t v,
                        const dafl_digest *ctx2)
{
    stream s = {u < v ? u : v, u < v ? v : u, ctx2};
    const stream *known = columns->items;

    for (size_t i = 0; i < columns->n; i++)
        if (known[i].lo == s.lo && known[i].hi == s.hi &&
            dafl_digest_equal(known[i].ctx2, ctx2))
            return i;
    *(stream *)lab_list_add(columns, sizeof s) = s;
    return columns->n - 1;
}

/* row -= times pivot, within what an int32_t holds. */
static void subtract(int32_t *row, const int32_t *pivot, int64_t times,
                     size_t width)
{
    for (size_t i = 0; i < width && times != 0; i++) {
        int64_t v = row[i] - times * pivot[i];
        if (v > INT32_MAX || v < INT32_MIN)
            lab_die("leak: numbers grow beyond 32 bits");
        row[i] = (int32_t)v;
    }
}

static void swap_rows(int32_t *a, int32_t *b, size_t width)
{
    for (size_t i = 0; i < width; i++) {
        int32_t t = a[i];
        a[i] = b[i];
        b[i] = t;
    }
}

/* Rows of m: `cols` entries, then the unit matrix. Returns where the rows
 * begin that have come to zero; beside them stand the combinations. */
static size_t eliminate(int32_t *m, size_t rows, size_t cols)
{
    size_t width = cols + rows, done = 0;

    for (size_t c = 0; c < cols; c++) {
        size_t pivot = rows;
        bool any = false;
        for (size_t r = done; r < rows; r++) {
            int32_t v = m[r * width + c];
            any |= v != 0;
            if ((v == 1 || v == -1) && pivot == rows)
                pivot = r;
        }
        if (!any)
            continue;
        if (pivot == rows)
            lab_die("leak: no pivot of 1 or -1, the result would not hold "
                    "modulo 2^w");
        swap_rows(m + done * width, m + pivot * width, width);
        for (size_t r = done + 1; r < rows; r++)
            subtract(m + r * width, m + done * width,
                     (int64_t)m[r * width + c] * m[done * width + c], width);
        done++;
    }
    return done;
}

/* The rows: vectors of the slot (0: of all) that are in the attacker's hands
 * and not its own. A colluder's input and all its streams are known, so its
 * vector adds nothing to what can be said of the others. */
static void gather_rows(leak *k, uint32_t slot)
{
    free(k->rows);
    k->rows = lab_alloc(k->uploads.n, sizeof(leak_vector *));
    k->n_rows = 0;
    for (size_t i = 0; i < k->uploads.n; i++) {
        leak_vector *v = leak_vector_at(k, i);
        if (v->up.reached && (slot == 0 || v->up.slot == slot) &&
            !dafl_members_has(&k->colluders, v->up.client))
            k->rows[k->n_rows++] = v;
    }
}

/* The columns of a row, +1 or -1 each: the streams that are not known. In the
 * first pass, m is NULL, they are only counted. */
static void fill_row(leak *k, lab_list *columns, size_t r, int32_t *m)
{
    const leak_upload *u = leak_streams_of(k, k->rows[r]);

    for (uint16_t v = 0; v < k->n && u != NULL; v++)
        if (dafl_members_has(&u->a, v) && !leak_knows_stream(k, u, v)) {
            size_t c = column_of(columns, u->client, v, &u->ctx2);
            if (m != NULL)
                m[c] = v >= u->client ? 1 : -1;
        }
}

static void solve(leak *k, uint32_t slot)
{
    lab_list columns = {0};
    size_t cols, width, from;
    int32_t *m;

    gather_rows(k, slot);
    for (size_t r = 0; r < k->n_rows; r++)
        fill_row(k, &columns, r, NULL);
    cols = columns.n;
    width = cols + k->n_rows;
    m = lab_alloc(k->n_rows * width, sizeof *m);
    for (size_t r = 0; r < k->n_rows; r++) {
        fill_row(k, &columns, r, m + r * width);
        m[r * width + cols + r] = 1;
    }
    from = eliminate(m, k->n_rows, cols);
    k->dim = k->n_rows - from;
    free(k->combos);
    k->combos = lab_alloc(k->dim * k->n_rows, sizeof *k->combos);
    for (size_t i = 0; i < k->dim; i++)
        memcpy(k->combos + i * k->n_rows, m + (from + i) * width + cols,
               k->n_rows * sizeof *k->combos);
    free(m);
    lab_list_drop(&columns);
}

/* How often the input of a client to a question is in a combination. */
static int64_t weight(const leak *k, size_t combo, size_t client,
                      uint32_t question)
{
    int64_t sum = 0;

    for (size_t r = 0; r < k->n_rows; r++)
        if (k->rows[r]->up.client == client &&
            k->rows[r]->up.question == question)
            sum += k->combos[combo * k->n_rows + r];
    return sum;
}

size_t leak_dim(leak *k, uint32_t slot)
{
    solve(k, slot);
    return k->dim;
}

bool leak_is_sum(leak *k, uint32_t slot, const dafl_members *u3)
{
    dafl_members honest = dafl_members_minus(u3, &k->colluders);
    uint32_t question = lab_slot_question(k->lab, slot);
    int64_t sign;

    solve(k, slot);
    if (dafl_members_count(&honest) == 0)
        return k->dim == 0;
    if (k->dim != 1)
        return false;
    sign = 0;
    for (size_t u = 0; u < k->n; u++) {
        int64_t times = weight(k, 0, u, question);
        if (!dafl_members_has(&honest, u) && times != 0)
            return false;
        if (!dafl_members_has(&honest, u))
            continue;
        if (sign == 0)
            sign = times;
        if (times != sign || (times != 1 && times != -1))
            return false;
    }
    return true;
}

static bool counts_cells_alike(const leak *k, size_t combo, uint32_t question)
{
    const dafl_roster *roster = lab_roster(k->lab);

    for (size_t u = 0; u < k->n; u++)
        for (size_t v = 0; v < u; v++)
            if (roster->parties[u].cell == roster->parties[v].cell &&
                !dafl_members_has(&k->colluders, u) &&
                !dafl_members_has(&k->colluders, v) &&
                weight(k, combo, u, question) != weight(k, combo, v, question))
                return false;
    return true;
}

bool leak_is_of_cells(leak *k, uint32_t slot)
{
    solve(k, slot);
    for (size_t i = 0; i < k->dim; i++)
        for (size_t r = 0; r < k->n_rows; r++)
            if (!counts_cells_alike(k, i, k->rows[r]->up.question))
                return false;
    return true;
}

/* Slots have no stream in common unless one was used again. */
bool leak_run_is_of_cells(leak *k)
{
    for (size_t i = 0; i < k->uploads.n; i++)
        if (leak_masks_of(k, i) == LEAK_REUSED)
            return leak_is_of_cells(k, 0);
    for (uint32_t slot = 1; slot <= leak_last_slot(k); slot++)
        if (!leak_is_of_cells(k, slot))
            return false;
    return true;
}

/* ---- the rank of a run ---- */

#define PRIME 2147483647

static uint64_t power(uint64_t base, uint64_t exponent)
{
    uint64_t result = 1;

    for (; exponent > 0; exponent >>= 1) {
        if (exponent & 1)
            result = result * base % PRIME;
        base = base * base % PRIME;
    }
    return result;
}

/* Modulo a prime: never more than the rank over the rationals, and less only
 * if the prime divides a minor. */
static size_t rank_of(uint64_t *m, size_t rows, size_t cols)
{
    size_t done = 0;

    for (size_t c = 0; c < cols && done < rows; c++) {
        size_t p = done;
        uint64_t inverse;
        while (p < rows && m[p * cols + c] == 0)
            p++;
        if (p == rows)
            continue;
        for (size_t i = 0; i < cols; i++) {
            uint64_t t = m[p * cols + i];
            m[p * cols + i] = m[done * cols + i];
            m[done * cols + i] = t;
        }
        inverse = power(m[done * cols + c], PRIME - 2);
        for (size_t r = done + 1; r < rows; r++) {
            uint64_t times = m[r * cols + c] * inverse % PRIME;
            for (size_t i = c; i < cols && times != 0; i++)
                m[r * cols + i] =
                    (m[r * cols + i] + (PRIME - times) * m[done * cols + i]) %
                    PRIME;
        }
        done++;
    }
    return done;
}

/* Cells with an honest client, times questions of which there is a vector. */
static size_t whole_cell_space(const leak *k, uint32_t questions)
{
    const dafl_roster *roster = lab_roster(k->lab);
    size_t cells = 0, asked = 0;

    for (uint16_t i = 0; i < roster->n_cells; i++) {
        dafl_members cell = dafl_roster_cell(roster, i);
        cell = dafl_members_minus(&cell, &k->colluders);
        cells += dafl_members_count(&cell) > 0;
    }
    for (uint32_t q = 0; q < questions; q++) {
        bool any = false;
        for (size_t r = 0; r < k->n_rows; r++)
            any |= k->rows[r]->up.question == q;
        asked += any;
    }
    return cells * asked;
}

size_t leak_run_rank(leak *k, size_t *most)
{
    uint32_t questions = 0;
    size_t cols, rank;
    uint64_t *m;

    solve(k, 0);
    for (size_t r = 0; r < k->n_rows; r++)
        if (k->rows[r]->up.question >= questions)
            questions = k->rows[r]->up.question + 1;
    cols = k->n * questions;
    m = lab_alloc(k->dim * cols, sizeof *m);
    for (size_t i = 0; i < k->dim; i++)
        for (size_t u = 0; u < k->n; u++)
            for (uint32_t q = 0; q < questions; q++) {
                int64_t times = weight(k, i, u, q) % PRIME;
                m[i * cols + u * questions + q] =
                    (uint64_t)(times < 0 ? times + PRIME : times);
            }
    rank = rank_of(m, k->dim, cols);
    free(m);
    *most = whole_cell_space(k, questions);
    return rank;
}

/* ---- the numbers ---- */

/* Words that all vectors of a combination have. */
static size_t common_words(const leak *k, size_t combo)
{
    size_t bytes = SIZE_MAX;

    for (size_t r = 0; r < k->n_rows; r++)
        if (k->combos[combo * k->n_rows + r] != 0 && k->rows[r]->up.len < bytes)
            bytes = k->rows[r]->up.len;
    return bytes / (lab_config(k->lab)->contract.w / 8);
}

static bool combo_is_real(leak *k, size_t combo)
{
    size_t n = common_words(k, combo), right = 0;
    uint64_t *found = lab_alloc(n, sizeof *found);
    uint64_t *words = lab_alloc(n, sizeof *words);
    unsigned w = lab_config(k->lab)->contract.w;

    for (size_t r = 0; r < k->n_rows; r++) {
        int32_t times = k->combos[combo * k->n_rows + r];
        const leak_upload *u = &k->rows[r]->up;
        size_t len = lab_answer_len(k->lab, u->question);
        int64_t *x = lab_alloc(len, sizeof *x);
        if (times != 0)
            (void)leak_strip(k, u, words, n);
        lab_answer(k->lab, u->client, u->question, x);
        for (size_t i = 0; i < n && times != 0; i++)
            found[i] += (uint64_t)(int64_t)times * (words[i] - (uint64_t)x[i]);
        free(x);
    }
    while (right < n && (found[right] & UINT64_MAX >> (64 - w)) == 0)
        right++;
    free(found);
    free(words);
    return right == n && n > 0;
}

bool leak_is_real(leak *k, uint32_t slot)
{
    bool real = true;

    solve(k, slot);
    for (size_t i = 0; i < k->dim; i++)
        real = real && combo_is_real(k, i);
    return real && !k->unreal;
}
