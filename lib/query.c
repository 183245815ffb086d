/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/query.h"

void dafl_query_layout(dafl_layout *out, const dafl_params *p,
                       const dafl_query *query)
{
    unsigned s = p->contract.exact ? p->contract.s : 0;

    *out = (dafl_layout){0};
    switch (query->kind) {
    case DAFL_QUERY_CENSUS:
        dafl_layout_add(out, "rows", 1, 1, false, 0);
        dafl_layout_add(out, "classes", 1, p->classes, false, 0);
        break;
    case DAFL_QUERY_GRAM:
        dafl_layout_add(out, "G", p->width, p->width, true, 2 * s);
        dafl_layout_add(out, "Ht", p->classes, p->width, false, s);
        break;
    case DAFL_QUERY_RESIDUAL:
        dafl_layout_add(out, "Pi", p->hidden, p->hidden, true, 2 * s);
        dafl_layout_add(out, "Upsilon", p->hidden, p->classes, false, 2 * s);
        break;
    case DAFL_QUERY_INCREMENT:
        dafl_layout_add(out, "PhiZ", p->width, query->rank, false, 2 * s);
        break;
    case DAFL_QUERY_REPORT:
        dafl_layout_add(out, "rows", 1, 2, false, 0);
        dafl_layout_add(out, "train", 1, p->layers + 1, false, 0);
        dafl_layout_add(out, "held", 1, p->layers + 1, false, 0);
        break;
    case DAFL_QUERY_DONE:
        break;
    }
}

const char *dafl_query_name(dafl_query_kind kind)
{
    static const char *const names[] = {"census",    "gram",   "residual",
                                        "increment", "report", "done"};

    return names[kind];
}
