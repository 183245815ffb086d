/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/params.h"

#include <math.h>
#include <string.h>

static const char *const methods[] = {"deepafl", "afl"};
static const char *const schedules[] = {"delta", "full"};
static const char *const ablations[] = {"nothing", "skip", "projection",
                                        "activation", "omega"};

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static dafl_err find(unsigned *out, const char *const *names, size_t n,
                     const char *what, const char *name, dafl_why *why)
{
    char list[128] = "";

    for (size_t i = 0; i < n; i++) {
        if (strcmp(names[i], name) == 0) {
            *out = (unsigned)i;
            return DAFL_OK;
        }
        strncat(list, i == 0 ? "" : ", ", sizeof list - strlen(list) - 1);
        strncat(list, names[i], sizeof list - strlen(list) - 1);
    }
    return dafl_fail(why, DAFL_ERR_INPUT, "unknown %s '%s': choose one of %s",
                     what, name, list);
}

const char *dafl_method_name(dafl_method method)
{
    return methods[method];
}

const char *dafl_schedule_name(dafl_schedule schedule)
{
    return schedules[schedule];
}

const char *dafl_ablation_name(dafl_ablation ablate)
{
    return ablations[ablate];
}

dafl_err dafl_method_parse(dafl_method *out, const char *name, dafl_why *why)
{
    unsigned i = 0;

    DAFL_TRY(find(&i, methods, COUNT(methods), "method", name, why));
    *out = (dafl_method)i;
    return DAFL_OK;
}

dafl_err dafl_schedule_parse(dafl_schedule *out, const char *name,
                             dafl_why *why)
{
    unsigned i = 0;

    DAFL_TRY(find(&i, schedules, COUNT(schedules), "schedule", name, why));
    *out = (dafl_schedule)i;
    return DAFL_OK;
}

dafl_err dafl_ablation_parse(dafl_ablation *out, const char *name,
                             dafl_why *why)
{
    unsigned i = 0;

    DAFL_TRY(find(&i, ablations, COUNT(ablations), "ablation", name, why));
    *out = (dafl_ablation)i;
    return DAFL_OK;
}

static dafl_err check_size(const char *what, size_t value, size_t least,
                           size_t most, dafl_why *why)
{
    if (value >= least && value <= most)
        return DAFL_OK;
    return dafl_fail(why, DAFL_ERR_INPUT, "%s %zu: choose %zu to %zu", what,
                     value, least, most);
}

static dafl_err check_penalty(const char *what, double value, dafl_why *why)
{
    if (isfinite(value) && value >= 0)
        return DAFL_OK;
    return dafl_fail(why, DAFL_ERR_INPUT,
                     "%s %g: choose a finite number, zero or more", what,
                     value);
}

dafl_err dafl_params_check(dafl_params *p, dafl_why *why)
{
    DAFL_TRY(check_size("features", p->features, 1, DAFL_SIZE_MAX, why));
    if (p->method == DAFL_METHOD_AFL) {
        p->width = p->features;
        p->hidden = p->features;
        p->layers = 0;
        p->ablate = DAFL_ABLATE_NOTHING;
    }
    DAFL_TRY(check_size("width", p->width, 1, DAFL_SIZE_MAX, why));
    DAFL_TRY(check_size("hidden width", p->hidden, 1, DAFL_SIZE_MAX, why));
    DAFL_TRY(check_size("classes", p->classes, 2, DAFL_SIZE_MAX, why));
    DAFL_TRY(check_size("layers", p->layers, 0, DAFL_LAYERS_MAX, why));
    DAFL_TRY(check_penalty("lambda", p->lambda, why));
    DAFL_TRY(check_penalty("gamma", p->gamma, why));
    if ((p->ablate == DAFL_ABLATE_PROJECTION ||
         p->ablate == DAFL_ABLATE_OMEGA) &&
        p->width != p->hidden)
        return dafl_fail(why, DAFL_ERR_INPUT,
                         "ablation of %s needs equal widths, not %zu and %zu",
                         dafl_ablation_name(p->ablate), p->width, p->hidden);
    return dafl_contract_derive(&p->contract, why);
}
