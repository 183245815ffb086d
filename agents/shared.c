/* SPDX-License-Identifier: Apache-2.0 */
#include "agents/shared.h"

#include <pthread.h>
#include <stdlib.h>

struct shared {
    const dafl_model *model;
    pthread_mutex_t lock;
    dafl_projection *at; /* layers + 1; drawn while somebody holds them */
    size_t *users;
};

dafl_err shared_new(shared **out, const dafl_model *model)
{
    size_t n = model->params.layers + 1;
    shared *s = calloc(1, sizeof *s);

    if (s == NULL)
        return DAFL_ERR_NOMEM;
    s->model = model;
    s->at = calloc(n, sizeof *s->at);
    s->users = calloc(n, sizeof *s->users);
    pthread_mutex_init(&s->lock, NULL);
    if (s->at == NULL || s->users == NULL) {
        shared_free(&s);
        return DAFL_ERR_NOMEM;
    }
    *out = s;
    return DAFL_OK;
}

void shared_free(shared **shared_projections)
{
    shared *s = *shared_projections;

    if (s == NULL)
        return;
    for (size_t k = 0; s->at != NULL && k <= s->model->params.layers; k++)
        dafl_projection_drop(&s->at[k]);
    free(s->at);
    free(s->users);
    pthread_mutex_destroy(&s->lock);
    free(s);
    *shared_projections = NULL;
}

dafl_err shared_take(shared *s, size_t k, const dafl_projection **held)
{
    dafl_err err = DAFL_OK;

    pthread_mutex_lock(&s->lock);
    if (s->users[k] == 0)
        err = dafl_model_projection(s->model, &s->at[k], k);
    if (err == DAFL_OK) {
        const dafl_projection *before = *held;
        s->users[k]++;
        *held = &s->at[k];
        if (before != NULL && --s->users[before - s->at] == 0)
            dafl_projection_drop(&s->at[before - s->at]);
    }
    pthread_mutex_unlock(&s->lock);
    return err;
}
