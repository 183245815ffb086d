/* SPDX-License-Identifier: Apache-2.0 */
/* run.yaml: who takes part in a run and what all of them agree on, in one file
 * (docs/config.md). Every party reads its own copy; what is compared is not the
 * file but two digests, of the roster and of the config, which know nothing of
 * comments, the order of keys or white space. */
#ifndef DAFL_AGENTS_RUNFILE_H
#define DAFL_AGENTS_RUNFILE_H

#include "protocol/config.h"
#include "protocol/deep.h"

#define RUNFILE_BYTES_MAX ((size_t)1 << 20)

typedef struct {
    dafl_roster roster;
    dafl_config config; /* its method_params are a view of `method` */
    dafl_params params; /* with the config's contract */
    dafl_participation participation;
    dafl_digest roster_digest, config_digest;
    dafl_writer method;
} runfile;

/* Read and judge everything: what comes out has passed dafl_config_check.
 * DAFL_ERR_INPUT with one sentence that names the file, the line where there is
 * one, the field and what is allowed; a broken rule of the protocol by its name
 * (E_POLICY, E_PARAMS). */
DAFL_CHECK dafl_err runfile_load(runfile **out, const char *path,
                                 dafl_why *why);
/* The same of a text. `name` is what reasons call it; NULL: they begin with the
 * field and name no line. */
DAFL_CHECK dafl_err runfile_read(runfile **out, dafl_bytes text,
                                 const char *name, dafl_why *why);
void runfile_free(runfile **run);

/* Cells that one sum is over when everybody is there, and the fewest clients
 * that they can have. */
size_t runfile_cells_in_sum(const runfile *run);
size_t runfile_least_sum(const runfile *run, size_t cells);

/* Numbers of the longest answer to a question. */
uint64_t runfile_longest_answer(const runfile *run);

/* Bytes of the largest message body that the run needs. */
uint64_t runfile_largest_body(const runfile *run);

/* For the telephone: "1a2b 3c4d .. \n", 64 hex digits in groups of four. */
#define RUNFILE_DIGEST_TEXT 80
void runfile_digest_text(char text[RUNFILE_DIGEST_TEXT], const dafl_digest *d);

#endif
