/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a run file: refused with a reason, or a run that keeps every
 * rule, with the digests of what it says. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agents/runfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void require(bool claim)
{
    if (!claim)
        abort();
}

static void check_roster(const runfile *run)
{
    dafl_writer w = {0};
    dafl_roster *again = malloc(sizeof *again);
    dafl_digest digest;

    dafl_put_roster(&w, &run->roster);
    if (again != NULL && dafl_writer_done(&w) == DAFL_OK) {
        require(dafl_get_roster(again, dafl_writer_bytes(&w), NULL) == DAFL_OK);
        require(dafl_roster_digest(&digest, again) == DAFL_OK);
        require(dafl_digest_equal(&digest, &run->roster_digest));
    }
    dafl_writer_drop(&w);
    free(again);
}

static void check_config(const runfile *run)
{
    dafl_writer w = {0};
    dafl_config again;
    dafl_params params = {.contract = run->config.contract};
    dafl_participation part;
    dafl_digest digest;

    require(dafl_config_check(&run->config, &run->roster, NULL) ==
            DAFL_FAULT_NONE);
    require(dafl_get_deep_params(&params, &part, run->config.method_params,
                                 NULL) == DAFL_OK);
    require(params.features == run->params.features &&
            params.lambda == run->params.lambda &&
            params.contract.w == run->params.contract.w &&
            part.permille == run->participation.permille);
    dafl_put_config(&w, &run->config);
    if (dafl_writer_done(&w) == DAFL_OK) {
        require(dafl_get_config(&again, dafl_writer_bytes(&w), NULL) ==
                DAFL_OK);
        require(dafl_config_digest(&digest, &again) == DAFL_OK);
        require(dafl_digest_equal(&digest, &run->config_digest));
    }
    dafl_writer_drop(&w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    runfile *run = NULL;
    dafl_why why = {""};
    dafl_err err = runfile_read(&run, (dafl_bytes){data, len}, "f", &why);

    if (err != DAFL_OK) {
        require(err == DAFL_ERR_INPUT && run == NULL);
        require(strncmp(why.text, "f: ", 3) == 0 ||
                strncmp(why.text, "f, ", 3) == 0);
        return 0;
    }
    check_roster(run);
    check_config(run);
    require(runfile_least_sum(run, runfile_cells_in_sum(run)) >=
            run->config.policy.m);
    runfile_free(&run);
    return 0;
}
