/* SPDX-License-Identifier: Apache-2.0 */
/* What the texts of a run file mean as numbers and choices. */
#include "agents/runfile_raw.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool raw_whole(const char *text, uint64_t *out)
{
    size_t n = strspn(text, "0123456789");

    if (n == 0 || text[n] != '\0' || (n > 1 && text[0] == '0'))
        return false;
    errno = 0;
    *out = strtoull(text, NULL, 10);
    return errno == 0;
}

/* A number with at most three digits after the point, times 1000. */
static bool parse_thousandths(const char *text, uint64_t *out)
{
    char whole[21];
    const char *point = strchr(text, '.');
    size_t len = point == NULL ? strlen(text) : (size_t)(point - text);
    size_t more = point == NULL ? 0 : strlen(point + 1);
    uint64_t part = 0, scale = 1000;

    if (len >= sizeof whole || (point != NULL && (more < 1 || more > 3)))
        return false;
    memcpy(whole, text, len);
    whole[len] = '\0';
    if (!raw_whole(whole, out) || *out > UINT64_MAX / 1000 - 1)
        return false;
    for (size_t i = 0; i < more; i++) {
        if (!isdigit((unsigned char)point[1 + i]))
            return false;
        scale /= 10;
        part += scale * (uint64_t)(point[1 + i] - '0');
    }
    *out = *out * 1000 + part;
    return true;
}

static void store(const raw_number *n, uint64_t v)
{
    uint16_t v16 = (uint16_t)v;
    uint32_t v32 = (uint32_t)v;

    if (n->size == sizeof v16)
        memcpy(n->out, &v16, sizeof v16);
    else if (n->size == sizeof v32)
        memcpy(n->out, &v32, sizeof v32);
    else
        memcpy(n->out, &v, sizeof v);
}

dafl_err raw_take_number(const raw_source *src, const raw_number *n)
{
    uint64_t v = 0;

    if (n->text == NULL && !n->needed)
        return DAFL_OK;
    if (n->kind == RAW_THOUSANDTHS) {
        if (n->text == NULL || !parse_thousandths(n->text, &v) ||
            v < n->least || v > n->most)
            return raw_refuse(src, n->path, n->text,
                              "choose %g to %.10g, with at most three digits "
                              "after the point",
                              (double)n->least / 1000, (double)n->most / 1000);
    } else if (n->text == NULL || !raw_whole(n->text, &v) || v < n->least ||
               v > n->most) {
        return raw_refuse(src, n->path, n->text,
                          "choose a whole number from %" PRIu64 " to %" PRIu64,
                          n->least, n->most);
    }
    store(n, v);
    return DAFL_OK;
}

dafl_err raw_take_numbers(const raw_source *src, const raw_number *list,
                          size_t n)
{
    for (size_t i = 0; i < n; i++)
        DAFL_TRY(raw_take_number(src, &list[i]));
    return DAFL_OK;
}

dafl_err raw_take_penalty(const raw_source *src, const char *path,
                          const char *text, double *out)
{
    char *end = NULL;
    double v;

    if (text == NULL)
        return DAFL_OK;
    errno = 0;
    v = strtod(text, &end);
    /* Neither spaces nor "inf", "nan" or hexadecimal. */
    if (strspn(text, "0123456789.eE+-") != strlen(text) || end == text ||
        *end != '\0' || errno != 0 || !isfinite(v) || v < 0)
        return raw_refuse(src, path, text,
                          "choose a finite number, zero or more");
    *out = v;
    return DAFL_OK;
}

dafl_err raw_take_choice(const raw_source *src, const char *path,
                         const char *text, const char *const *names, size_t n,
                         unsigned *out)
{
    char list[128] = "";
    size_t len = 0;

    if (text == NULL)
        return DAFL_OK;
    for (size_t i = 0; i < n; i++) {
        if (strcmp(names[i], text) == 0) {
            *out = (unsigned)i;
            return DAFL_OK;
        }
        len += (size_t)snprintf(list + len, sizeof list - len, "%s%s",
                                i == 0 ? "" : ", ", names[i]);
    }
    return raw_refuse(src, path, text, "choose one of %s", list);
}
